#!/bin/sh
# ki-normalize end to end: fixtures, upstream's files where they are at hand, sources from a pipe, config, canonical JSON.
# Each fixtures/csv/<name>/ holds input.csv, the options in args, and in `expected` all that comes out.
cd "$(dirname "$0")/.." && . tests/tap.sh

N=$B/bin/ki-normalize
export KI_CONFIG="$PWD/config"
# All that a fixture comes to: exit code, list, messages, report.
outcome() { # directory
	options=$(cat "$1/args" 2>/dev/null)
	# shellcheck disable=SC2086
	(cd "$1" && "$N" --list --metric all $options input.csv >"$D/list" 2>"$D/messages"
		echo "exit $?"
		echo "--- list"
		cat "$D/list"
		echo "--- messages"
		cat "$D/messages"
		echo "--- report"
		"$N" --quiet --report $options input.csv 2>/dev/null)
}
# Snapshot lines without the digest of the tables, which changes with every line of config/.
plain() {
	sed '/"type":"snapshot"/s/"config":"sha256:[0-9a-f]*",//'
}

for fixture in fixtures/csv/*/; do
	name=$(basename "$fixture")
	outcome "$fixture" >"$D/outcome"
	same "$fixture/expected" "$D/outcome" "fixture $name comes out as expected"
	[ -f "$fixture/records.jsonl" ] || continue
	# shellcheck disable=SC2046
	(cd "$fixture" && "$N" --quiet $(cat args 2>/dev/null) input.csv) | plain >"$D/records"
	same "$fixture/records.jsonl" "$D/records" "fixture $name makes the same records, byte for byte"
done

# ---- what fixtures cannot say alone ----

list() {
	"$N" --quiet --list "$@"
}
tail -c +4 fixtures/csv/byte-order-mark/input.csv >"$D/no-mark.csv"
list fixtures/csv/byte-order-mark/input.csv >"$D/a"
list "$D/no-mark.csv" >"$D/b"
same "$D/a" "$D/b" "a byte order mark changes no run"
"$N" fixtures/csv/byte-order-mark/input.csv | head -1 | grep -q "$(sha256sum <fixtures/csv/byte-order-mark/input.csv | cut -c1-64)"
ok $? "the snapshot line has the digest of all bytes, mark included"
list fixtures/csv/columns-reordered/input.csv >"$D/b"
same "$D/a" "$D/b" "columns in another order give the same digests"
list fixtures/csv/columns-extra/input.csv >"$D/b"
same "$D/a" "$D/b" "an unknown column changes no digest"
list fixtures/csv/cr-line-ends/input.csv | wc -l | grep -qx ' *3'
ok $? "a file with CR line ends has all its rows"
"$N" fixtures/csv/mixed-line-ends/input.csv | grep -c '"xLabel":"hidden\\rsize"' | grep -qx 1
ok $? "a CR inside quotes stays in the value"
"$N" --quiet fixtures/csv/open-quote/input.csv 2>/dev/null | grep -q '"type":"report"'
[ $? -ne 0 ]
ok $? "a file cut by an open quote has no report line"
"$N" --quiet fixtures/csv/not-utf8/input.csv | iconv -f UTF-8 -t UTF-8 >/dev/null
ok $? "output is UTF-8 although a row was not"
"$N" --quiet fixtures/csv/config-number-spellings/input.csv | grep '"kind":"WorkloadCase"' | grep -c '"value":0.000001}' | grep -qx 1
ok $? "five spellings of 1e-06 are one workload, written 0.000001"
"$N" --quiet fixtures/csv/config-number-spellings/input.csv | grep '"kind":"WorkloadCase"' | grep -c '"value":1e-7}' | grep -qx 1
ok $? "1e-07 is another, written 1e-7"
"$N" --quiet fixtures/csv/ragged-rows/input.csv >/dev/null
[ $? -eq 1 ]
ok $? "exit 1 when rows were malformed"

for zone in UTC America/Los_Angeles Asia/Kolkata Europe/Berlin; do
	TZ=$zone "$N" fixtures/csv/times-near-dst/input.csv
done | sort | uniq -c | awk '$1 != 4 { bad = 1 } END { exit bad || NR == 0 }'
ok $? "the time zone of the host plays no part"

# ---- sources from a pipe ----

source_line() { # channel member file digest
	printf '{"channel":"%s",%s"file":"x.csv","path":"%s","provenance":{"url":"u","a":1},"sha256":"sha256:%s"}\n' "$1" "$2" "$3" "$4"
}
sha() {
	sha256sum <"$1" | cut -c1-64
}
a=fixtures/csv/records-a-b/input.csv
m=fixtures/csv/memory/input.csv
{ source_line committed '"commit":"2120862ba532c9449e72d603ba6324310ae756e7",' $a "$(sha $a)"
  source_line gh-pages '"entry":"0701bab",' $m "$(sha $m)"; } | "$N" --sources - >"$D/wire"
ok $? "source lines are read from standard input"
head -1 "$D/wire" | plain >"$D/a"
head -1 "$D/wire" | grep -q "\"config\":\"sha256:$(cat config/bindings.json config/entries.json config/hardware.json config/providers.json | sha256sum | cut -c1-64)\""
ok $? "the snapshot line names the tables by digest"
printf '{"channel":"committed","commit":"2120862ba532c9449e72d603ba6324310ae756e7","file":"x.csv","provenance":{"a":1,"url":"u"},"sha256":"sha256:%s","sizeBytes":%s,"type":"snapshot","wire":1}\n' \
	"$(sha $a)" "$(wc -c <$a | tr -d ' ')" >"$D/b"
same "$D/b" "$D/a" "the snapshot line says where the bytes came from"
grep -c '"type":"report"' "$D/wire" | grep -qx 2
ok $? "each source ends with a report line"
grep '"upstream_commit":"0701bab26619b088738d096b2737e785d02dbbbc"' "$D/wire" | wc -l | grep -qx ' *5'
ok $? "runs of a known gh-pages entry carry its full commit"
{ source_line committed '' $a "$(sha $m)"; source_line committed '' $m "$(sha $m)"; } | "$N" --sources - >"$D/wire" 2>"$D/messages"
[ $? -eq 65 ] && grep -q 'do not have the SHA-256' "$D/messages"
ok $? "bytes with another digest than promised are refused"
head -1 "$D/wire" | grep -q "$(sha $m)" && grep -c '"type":"snapshot"' "$D/wire" | grep -qx 1
ok $? "nothing is emitted for them, and the next source is read all the same"
echo 'not json' | "$N" --sources - >"$D/wire" 2>/dev/null
[ $? -eq 65 ] && [ ! -s "$D/wire" ]
ok $? "a line that is no source line is refused"

# A record comes after everything it cites.
awk -F'"digest":"' '
	/"type":"snapshot"/ || /"type":"report"/ { next }
	{
		split($NF, own, "\""); seen[own[1]] = 1; rest = $0
		while (match(rest, /"sha256:[0-9a-f]+"/)) {
			d = substr(rest, RSTART + 1, RLENGTH - 2); rest = substr(rest, RSTART + RLENGTH)
			if (!(d in seen)) { print "# not there yet: " d; bad = 1 }
		}
	}
	END { exit bad }' fixtures/csv/drop-with-init-in-timing/records.jsonl
ok $? "whatever a record cites comes before it"

# ---- refusals and usage ----

"$N" >/dev/null 2>&1; [ $? -eq 64 ]; ok $? "no file is a usage error"
"$N" --no-such-option x >/dev/null 2>&1; [ $? -eq 64 ]; ok $? "an unknown option is a usage error"
"$N" --list --metric speed $a >/dev/null 2>&1; [ $? -eq 64 ]; ok $? "an unknown metric is a usage error"
"$N" --channel elsewhere $a >/dev/null 2>&1; [ $? -eq 64 ]; ok $? "an unknown channel is a usage error"
"$N" --commit xyz $a >/dev/null 2>&1; [ $? -eq 64 ]; ok $? "a commit that is none is a usage error"
"$N" "$D/none.csv" >/dev/null 2>&1; [ $? -eq 66 ]; ok $? "a missing file is not found"
: >"$D/empty.csv"
"$N" "$D/empty.csv" >/dev/null 2>&1; [ $? -eq 65 ]; ok $? "an empty file is refused"
"$N" "$D" >/dev/null 2>&1; [ $? -eq 65 ]; ok $? "a directory is refused"
"$N" --config "$D" $a >/dev/null 2>&1; [ $? -eq 78 ]; ok $? "a missing config is a config error"
if [ -w /dev/full ]; then
	"$N" $a >/dev/full 2>/dev/null; [ $? -eq 74 ]; ok $? "a full device is an output error"
	"$N" --help >/dev/full 2>/dev/null; [ $? -eq 74 ]; ok $? "also for help"
else
	skip "a full device is an output error" "no /dev/full here"
fi
"$N" $a >&- 2>/dev/null; [ $? -eq 74 ]; ok $? "a closed standard output is an output error"
"$N" --version | grep -q 'libcsv.*jansson.*OpenSSL'; ok $? "--version names the libraries"
"$N" --help | grep -q '^usage: '; ok $? "--help says how"

# ---- config ----

"$N" --check-config | grep -q '^config is sound: 71 rules and 46 script-only rules, 47 operations'
ok $? "the config that comes with it is sound"
"$N" --explain 'rms_norm,liger,forward,speed,ms,H,hidden size,4096,1,1,1,"{""M"": 2048, ""dtype"": ""torch.bfloat16"", ""eps"": 1e-06}",NVIDIA H200,2025-01-01 00:00:00,0.5.5' >"$D/a"
grep -q 'axes  *rows = 2048 · hidden = 4096 · bf16' "$D/a" && grep -q 'not .*x_name is not T' "$D/a"
ok $? "explain names the axes of a row, and why other rules do not fit"
"$N" --explain fixtures/csv/unknown-names/input.csv >"$D/a"
grep -q 'no rule knows this kernel' "$D/a" && grep -q 'the GPU is unknown: "NVIDIA H300"' "$D/a"
ok $? "explain reads a table and tells unknown names"
"$N" --explain - <fixtures/csv/records-a-b/input.csv | grep -c '^  rule ' | grep -qx 2
ok $? "explain reads standard input"

# ---- canonical JSON ----

printf '{"b":1.0,"a":[1e21,1E-7,"\\u00e9"]}\n' | "$N" --canonical >"$D/a"
printf '{"a":[1e+21,1e-7,"\303\251"],"b":1}\n' >"$D/b"
same "$D/b" "$D/a" "--canonical prints RFC 8785 text"
printf '{}\n' | "$N" --digest | grep -qx 'sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a'
ok $? "--digest prints its SHA-256"
printf '{"a":1,"a":2}\n[]\n"\\ud800"\n' | "$N" --canonical >"$D/a" 2>"$D/messages"
[ $? -eq 65 ] && printf '\n[]\n\n' | cmp -s - "$D/a" && grep -q '^ki-normalize: -:1:' "$D/messages" && grep -q '^ki-normalize: -:3:' "$D/messages"
ok $? "a document without canonical text is an empty line, a message, and exit 65 in the end"

# ---- upstream's own files ----

if [ ! -d "$SHARED/golden" ]; then
	skip "runs of upstream's files equal the published ones" "no ../shared here"
	plan
fi
U=$SHARED/upstream
G=$SHARED/golden

newest=$U/committed/2026-08-10T22-36-34Z-2120862ba532.csv
list "$newest" >"$D/a"
[ "$(lines "$D/a")" -eq 1649 ]
ok $? "the newest main file has 1,649 runs"
sed 's/.*"externalId":"\([^"]*\)".*"digest":"\([^"]*\)".*"comparisonKey":"\([^"]*\)".*/\1\t\2\t\3/' "$G/committed-2120862ba532/runs.jsonl" >"$D/b"
same "$D/b" "$D/a" "each with the published digest and comparison key, in the order of the file"

golden() { # golden-file sentence options...
	expected=$1 sentence=$2
	shift 2
	list "$@" | sort >"$D/a"
	sort "$expected" >"$D/b"
	same "$D/b" "$D/a" "$sentence"
}
for drop in "$U"/gh-pages/*.csv; do
	entry=$(basename "$drop" .csv)
	golden "$G/gh-pages/$entry.tsv" "drop $entry equals the golden list" --channel gh-pages --entry "$entry" "$drop"
	golden "$G/memory/$entry.tsv" "drop $entry equals the golden list of memory runs" --metric memory --channel gh-pages --entry "$entry" "$drop"
done
for file in "$U"/committed/*_cut*.csv; do
	name=$(basename "$file" .csv)
	tail=${name##*_}
	golden "$G/$name.tsv" "$name equals the golden list" --channel "${tail%-*}" --commit "${tail#*-}" "$file"
	golden "$G/memory/$name.tsv" "$name equals the golden list of memory runs" --metric memory --channel "${tail%-*}" --commit "${tail#*-}" "$file"
done
golden "$G/memory/2026-08-10T22-36-34Z-2120862ba532.tsv" "the newest main file equals the golden list of memory runs" --metric memory "$newest"

history() {
	find "$U/committed" -name '*.csv' | grep -v _cut | sort
}
# shellcheck disable=SC2046
list $(history) | sort -u >"$D/a"
sort "$G/committed-history-all.tsv" >"$D/b"
same "$D/b" "$D/a" "35 revisions of the main file hold the 1,961 golden runs"

# Each revision's counts, once what new rules and GPUs add is set apart: rows, speed, memory, prior runs, unknown GPUs and configs.
history | while read -r file; do
	"$N" --quiet --report "$file" | sed 's/.*"memory":\([0-9]*\),"new":{"gpu":{\([^}]*\)},"provider":{[^}]*},"rule":{\([^}]*\)}},"prior":\([0-9]*\),.*"rows":\([0-9]*\),.*"speed":\([0-9]*\)}/\5 \6 \1 \4 {\2} {\3}/'
done >"$D/a"
tr -d '\n' <"$G/committed-history.json" | sed 's/},[[:space:]]*{[[:space:]]*"commit"/\n&/g' |
	sed 's/.*"rows": \([0-9]*\),.*"speedRows": \([0-9]*\),.*"memoryRows": \([0-9]*\),.*"unknownConfig": {\([^}]*\)}.*"unknownGpu": {\([^}]*\)}.*"runs": \([0-9]*\),[[:space:]]*"newRuns.*/\1 \2 \3 \6 {\5} {\4}/' |
	sed 's/{[[:space:]]*/{/g; s/[[:space:]]*}/}/g; s/": /":/g; s/,[[:space:]]*"/,"/g' >"$D/b"
echo >>"$D/b"
sed -i '/^$/d' "$D/b"
[ "$(lines "$D/b")" -eq 35 ]
ok $? "committed-history.json tells of 35 revisions"
same "$D/b" "$D/a" "the counts of all 35 revisions agree with committed-history.json"

for file in "$U"/gh-pages/*.csv "$U"/committed/*.csv; do
	"$N" --quiet --report "$file"
done | grep -v '"rejectedTotal":0,.*"skippedTotal":0,' >"$D/a"
[ ! -s "$D/a" ]
ok $? "no row of any upstream file is skipped or rejected"

plan
