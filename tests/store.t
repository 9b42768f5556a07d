#!/bin/sh
# ki-store end to end: what is published, how it is read, ranked, compared and exported, and what the files of a store withstand.
# Fixtures of our own; upstream's files and their published digests where ../shared has them. KI_TEST_LONG=1: the long loops.
# shellcheck disable=SC2119,SC2120
cd "$(dirname "$0")/.." && . tests/tap.sh

FIXTURES=fixtures/csv
list() { # list STORE [OPTION...] - as TSV, in $D/out
	local store=$1
	shift
	ki list --store "$store" --format tsv "$@"
}
column() { # column STORE NAME [OPTION...] - one column, joined by blanks
	local store=$1 name=$2
	shift 2
	"$KI" list --store "$store" --format tsv --columns "$name" "$@" 2>"$D/err" | tr '\n' ' ' | sed 's/ $//'
}
dump() { # dump STORE - digest of all that is in it
	"$KI" export --store "$1" --metric all --format jsonl | sha256sum | cut -c1-64
}
clean() { # clean STORE SENTENCE
	ki check --store "$1"
	is "$rc $(cut -d: -f1 "$D/out")" '0 clean' "$2"
}

# --- one night after another (S01) ------------------------------------------------------------------------------------------------
S=$D/s01
publish "$S" $FIXTURES/day-1/input.csv 1111111111111111111111111111111111111111
is "$rc $(lines "$D/out") $(lines "$D/err")" '0 0 0' 'S01: a first day is published'
first=$("$KI" list --store "$S" --format tsv --columns x_value,median_ns,digest | sort)
publish "$S" $FIXTURES/day-2/input.csv 2222222222222222222222222222222222222222
list "$S" --columns x_value,median_ns
is "$(sort "$D/out" | tr '\t\n' '= ')" '1024=21504 2048=40000 4096=70000 4096=80000 8192=160000 ' \
	'S01: the vanished row stays, the changed value stands beside the first, the new row is there'
list "$S" --columns x_value,median_ns,digest
sort "$D/out" >"$D/a"
printf '%s\n' "$first" | comm -23 - "$D/a" >"$D/b"
is "$(lines "$D/b")" 0 'S01: what the first day said is still there, digest for digest'
ki log --store "$S"
is "$(sed 's/^ *\([0-9]*\)  [^ ]* /\1/' "$D/out" | tr -s ' ')" "1 committed 222222222222 3 rows, 3 carried, 2 new, 1 conflicts
0 committed 111111111111 3 rows, 3 carried, 3 new" 'S01: the log tells newest first, and the changed value as a conflict'
same_id=rms_norm/forward/liger/nvidia-a100-sxm4-80gb/hidden4096-rows2048-bf16/2025-04-01-08-00-02
ki show --store "$S" $same_id
is "$rc $(grep -c "^  [0-9a-f]\{16\}  $same_id" "$D/err")" '64 2' 'an external id of two runs is ambiguous, and both are listed'
ki show --store "$S" "$("$KI" list --store "$S" --format tsv --columns digest,median_ns | awk '$2 == 80000 { print $1 }')"
has "$D/out" '80000 ns' 'S01: the first value can still be had by its digest'
clean "$S" 'S01: the store is clean'

# --- the same again (S03) ----------------------------------------------------------------------------------------------------------
S=$D/s03
for n in 1 2 3; do
	ki nightly --store "$S" --snapshot $FIXTURES/duplicates/input.csv --commit "${n}00000000000" --json
	is "$rc $(jq -c '.totals.newRuns, .publications[0].carried, .publications[0].report.duplicates' "$D/out" | tr '\n' ' ')" \
		"0 $([ $n -eq 1 ] && echo 3 || echo 0) 3 1 " "S03: publication $n of the same rows adds $([ $n -eq 1 ] && echo three runs || echo nothing)"
done
{ header; tail -n +2 $FIXTURES/duplicates/input.csv | tac; } >"$D/reverse.csv"
publish "$S" "$D/reverse.csv" 400000000000
is "$rc $(runs "$S")" '0 3' 'S03: the rows in reverse order add nothing'
publish "$D/s03r" "$D/reverse.csv" 400000000000
is "$(dump "$D/s03r")" "$(dump "$S")" 'S03: and published alone they give the same dump'
is "$(column "$S" median_ns --sort digest | tr ' ' '\n' | sort -n | tr '\n' ' ')" '21504 21504 30000 ' 'S03: exact repeats are one run, another value is another run'
publish "$S" "$D/reverse.csv" 400000000000
ki nightly --store "$S" --snapshot "$D/reverse.csv" --commit 400000000000
is "$rc $(cat "$D/out")" '0 ki nightly: nothing new' 'the same file of the same commit is nothing new'
clean "$S" 'S03: the store is clean'
# The same measurement under another spelling of its config: the record is the same, and so is its place.
sed 's/""M"": 2048, /""M"":2048,/' $FIXTURES/duplicates/input.csv >"$D/respelled.csv"
publish "$S" "$D/respelled.csv" 500000000000
is "$rc $(runs "$S") $(dump "$S")" "0 3 $(dump "$D/s03r")" 'a config that is spelled another way adds no run, and moves none'
clean "$S" 'and the store is clean'

# --- lists never mix what cannot be compared (G01, G02, G06, G10) -----------------------------------------------------------------
S=$D/g01
publish "$S" $FIXTURES/modes/input.csv
list "$S" --metric all --columns comparison_key,mode,metric
sort -u "$D/out" | cut -f1 | sort | uniq -d >"$D/a"
is "$(lines "$D/out") $(sort -u "$D/out" | wc -l | tr -d ' ') $(lines "$D/a")" '9 5 0' 'G01: nine runs in five groups, none of which mixes modes or metrics'
is "$(column "$S" rank,cohort_size --mode no-grad-forward)" "1	2 2	2" 'G01: no-grad-forward is ranked on its own'
is "$(column "$S" metric,median_ns,median_bytes --metric memory)" 'peak_memory		1049' 'G01: memory is bytes, and apart from times'
S=$D/g02
publish "$S" $FIXTURES/gpus/input.csv
list "$S" --columns gpu,comparison_key,rank,cohort_size
is "$(lines "$D/out") $(cut -f2 "$D/out" | sort -u | wc -l | tr -d ' ') $(cut -f3- "$D/out" | sort -u | tr '\t' '/')" '6 6 1/1' \
	'G02: six known GPUs, six lists: 80 and 40 GB, PCIe, NVL and SXM apart'
is "$(jq -c '.publications[0].report.skipped.unknown_gpu' "$S/report.json")" '{"Tesla V100-SXM2-16GB":1,"nvidia a100-sxm4-80gb":1}' \
	'G02: two unknown names are counted by name, the other case among them'
S=$D/g06
publish "$S" $FIXTURES/versions/input.csv
is "$(column "$S" liger_version --sort version)" '0.5.9 0.5.10 0.6.0.dev20250401 0.6.0rc1 0.6.0 0.10.0' 'G06: versions sort by number, pre-releases before their release'
is "$(column "$S" liger_version --sort time)" '0.5.9 0.5.10 0.10.0 0.6.0 0.6.0rc1 0.6.0.dev20250401' 'by time they sort as observed'
is "$(column "$S" unranked | tr ' ' '\n' | sort | uniq -c | tr -s ' \n' ' ')" ' 5 SUPERSEDED ' 'of one case the latest observed stands, the others are superseded'
S=$D/g10
publish "$S" $FIXTURES/outlier/input.csv
is "$(column "$S" median_ns,rank --sort rank)" '40000	1 3053160000	2' 'G10: both values stand as reported'
ki cohort --store "$S" "$(column "$S" comparison_key --limit 1)"
is "$rc $(grep -c '76329.00x' "$D/out")" '0 1' 'G10: the ratio is told and no column breaks'
ki flags --store "$S" --code OUTLIER --json
is "$rc $(jq -c '[.code, .externalId, (.evidence | del(.caveats))]' "$D/out")" \
	'0 ["OUTLIER","rms_norm/forward/liger/nvidia-a100-sxm4-80gb/hidden1024-rows2048-bf16/2025-04-02-10-15-30",{"firstMedianNs":40000,"medianNs":3053160000,"ratio":76329}]' \
	'G10: and beyond the bound of config/flags.json it is flagged'

# --- comparing (G07) ---------------------------------------------------------------------------------------------------------------
S=$D/g07
publish "$S" $FIXTURES/noise-before/input.csv
publish "$S" $FIXTURES/noise-after/input.csv
compare() { # compare X-VALUE - the two runs of a size, older first
	# shellcheck disable=SC2046
	ki compare --store "$S" $("$KI" list --store "$S" --sort time --format tsv --columns x_value,digest | awk -v x="$1" '$1 == x { print $2 }')
}
compare 1024
is "$rc $(tail -1 "$D/out")" '0   [2] against [1]: 1.08x (+8.0 %); p20 to p80 overlap: no change claimed' 'G07: overlapping spreads claim no change'
has "$D/out" '[2] 95000' 'G07: the spread is shown'
compare 2048
is "$rc $(tail -1 "$D/out")" '0   [2] against [1]: 1.2x (+20.0 %); slower, beyond both spreads' 'G07: 0.200 to 0.240 ms is 20.0 % slower'
compare 4096
is "$rc $(tail -1 "$D/out")" '0   [2] against [1]: 0.9x (-10.0 %); faster, beyond both spreads' 'G07: 0.400 to 0.360 ms is 10.0 % faster'
# shellcheck disable=SC2046
ki compare --store "$S" $(column "$S" digest --sort time | cut -d' ' -f1,2)
is "$rc $(grep '^not comparable' "$D/out")" '0 not comparable: workload differs' 'two sizes are not comparable, and the first difference is named'
# shellcheck disable=SC2046
ki compare --store "$S" --json $(column "$S" digest --sort time | cut -d' ' -f1,4)
is "$(jq -c '[.comparable, .ratios[0].claim, .ratios[0].ratio, (.runs | length)]' "$D/out")" '[true,"overlap",1.08,2]' 'as JSON too'
ki compare --store "$S" "$(column "$S" digest --limit 1)"
is "$rc" 64 'one run alone is a usage error'
# shellcheck disable=SC2046
ki compare --store "$S" $(for i in 1 2 3 4 5 6 7 8 9; do column "$S" digest --limit 1; echo; done)
is "$rc" 64 'nine are too many'

# --- lists and filters -------------------------------------------------------------------------------------------------------------
list "$S" --limit 2
is "$(lines "$D/out") $(awk -F'\t' '{ print NF }' "$D/out" | sort -u)" '2 6' 'a list has six columns by default'
list "$S" --columns nothing
is "$rc" 64 'an unknown column is a usage error'
has "$D/err" 'there are external_id, digest' 'that names the columns there are'
ki list --store "$S" --format csv --columns workload_label,x_value,rank --sort id --limit 1
is "$(tr '\n' '|' <"$D/out")" 'workload_label,x_value,rank|rows = 2048 · hidden = 1024 · bf16,1024,|' 'CSV has a header line'
ki list --store "$S" --format json
is "$rc $(jq -c '[length, .[0].median, .[5].rank]' "$D/out")" '0 [6,100000,1]' 'JSON is one array'
ki list --store "$S" --json
is "$(jq -c .p80 "$D/out" | tr '\n' ' ')" '115000 203000 401000 125000 243000 361000 ' '--json is one object a line'
is "$(column "$S" x_value --since 2025-05-01 | wc -w | tr -d ' ') $(column "$S" x_value --since 2025-05-02T10:15:31Z)" '3 2048 4096' '--since takes a day or a time'
is "$(column "$S" x_value --gpu nvidia-a100-sxm4-80gb | wc -w | tr -d ' ') $(column "$S" x_value --gpu 'NVIDIA A100-SXM4-80GB' | wc -w | tr -d ' ') $(column "$S" x_value --gpu a100)" '6 6 ' \
	'a GPU is named by its name or by its slug, whole'
is "$(column "$D/g01" provider --kernel rms_norm --mode full --provider huggingface --dtype bf16)" huggingface 'filters go together'
for wrong in '--format x' '--sort x' '--metric x' '--since tomorrow' '--limit -1' '--no-such-option' 'operand' '--channel cutile' '--max-age 3' '--reason x'; do
	# shellcheck disable=SC2086
	ki list --store "$S" $wrong
	is "$rc $(lines "$D/out")" '64 0' "usage error: list $wrong"
done
ki list --store "$D/nowhere"
is "$rc $(lines "$D/err")" '66 1' 'no store is not found'
[ ! -e "$D/nowhere" ]
ok $? 'and reading makes none'
ki frobnicate
is "$rc" 64 'an unknown verb is a usage error'
KI_STORE=$S "$KI" list >"$D/a"
(cd "$D" && mkdir -p var && ln -s "$S" var/store && "$KI" list >"$D/b")
is "$(lines "$D/a") $(lines "$D/b")" '6 6' 'the store may come from KI_STORE, and is var/store by default'
for verb in list show log status check export cohort compare; do
	ki $verb --help
	is "$rc $(head -c 6 "$D/out")" '0 usage:' "ki $verb --help helps"
done
"$B/bin/ki-store" --version | grep -q 'LMDB .*jansson .*zstd '
ok $? '--version names the libraries'

# --- finding one run ---------------------------------------------------------------------------------------------------------------
digest=$(column "$S" digest --sort time --limit 1)
hex=${digest#sha256:}
id=$(column "$S" external_id --sort time --limit 1)
for name in "$digest" "$hex" "sha256:$(echo "$hex" | cut -c1-8)" "$(echo "$hex" | cut -c1-8)" "$id" "$(column "$S" name --sort time --limit 1)"; do
	ki show --store "$S" --json "$name"
	is "$rc $(jq -r .digest "$D/out")" "0 $digest" "a run is found by $name"
done
ki show --store "$S" "$(echo "$hex" | cut -c1-7)"
is "$rc" 66 'seven digits are too few to name a run'
ki show --store "$S" ffffffffffffffff
is "$rc $(lines "$D/out") $(lines "$D/err")" '66 0 1' 'a run that is not there is not found'
ki show --store "$S"
is "$rc" 64 'show wants a name'
operation=$(column "$S" operation --limit 1)
ki show --store "$S" "$operation"
is "$rc $(tr -d '\n' <"$D/out" | sha256sum | cut -c1-64)" "0 ${operation#sha256:}" 'any object is shown by its digest, in the bytes that have it'
ki cohort --store "$S" "$(echo "$digest" | cut -c1-20)"
a=$(sed -n 1p "$D/out")
ki cohort --store "$S" "$a"
is "$rc $(sed -n 4p "$D/out")" '0 2 runs, 1 ranked' 'a group is named by its key, or by a run in it'
ki cohort --store "$S" --json "$a"
is "$rc $(jq -c . "$D/out" | wc -l | tr -d ' ')" '0 1' 'as JSON too'
ki cohort --store "$S" 0000000000
is "$rc" 66 'a key that is not there is not found'

# --- status ------------------------------------------------------------------------------------------------------------------------
ki status --store "$S" --json
is "$rc $(jq -c '[.runs, .cases, .publications, .schema, .stale, (.channels | length), .channels[0].channel, .fileBytes > 0, .liveBytesPerRun > 0]' "$D/out")" \
	'0 [6,3,2,2,false,1,"committed",true,true]' 'status counts runs, cases and publications'
KI_NOW=2099-01-01T00:00:00Z "$KI" status --store "$S" --max-age 48 >"$D/out" 2>"$D/err"
is "$? $(lines "$D/err")" '75 1' 'a publication older than --max-age is stale'
ki status --store "$S" --max-age 48
is "$rc" 0 'a fresh one is not'
ki log --store "$S" --limit 1 --json
is "$(lines "$D/out") $(jq -c '[.id, .newRuns, .report.rows, .channel]' "$D/out")" '1 [1,3,3,"committed"]' 'the log is JSON when asked, and as short as asked'

ki check --store "$S" --json
is "$rc $(jq -c '[.runs, .cases, .publications, .problems, .unpublished]' "$D/out")" '0 [6,3,2,0,false]' 'a check is JSON when asked'

# --- export (X03) ------------------------------------------------------------------------------------------------------------------
KI_NOW=2026-01-02T03:04:05Z
export KI_NOW
publish "$D/x03" $FIXTURES/example/input.csv
publish "$D/x03" $FIXTURES/memory/input.csv
publish "$D/x03" $FIXTURES/noise-before/input.csv
ki export --store "$D/x03" --metric all --out "$D/dump"
file=$(cat "$D/out")
latest() {
	jq -r ".$1" "$D/dump/latest.json"
}
is "$rc $D/dump/$(latest file)" "0 $file" 'export prints the path of the dump, and latest.json names it'
is "$(latest sha256)" "sha256:$(sha256sum <"$file" | cut -c1-64)" 'with the digest of its bytes'
is "$(latest sizeBytes)" "$(wc -c <"$file" | tr -d ' ')" 'their number'
is "$(latest lines)" "$(zstd -dc "$file" | wc -l | tr -d ' ')" 'and the number of lines'
is "$(latest generatedAt)" 2026-01-02T03:04:05.000Z 'and the time'
is "$(basename "$file" | sed 's/[0-9a-f]\{8\}\.jsonl/X.jsonl/')" catalog-2026-01-02-X.jsonl.zst 'the name has the date of the newest publication'
is "$(basename "$file" | cut -d- -f5 | cut -c1-8)" "$(latest sha256 | cut -c8-15)" 'and 8 digits of the digest'
zstd -qt "$file"
ok $? 'the dump is whole, says zstd'
is "$(stat -c %a "$file" "$D/dump/latest.json" | tr '\n' ' ')" '644 644 ' 'both can be read by all'
sha256sum "$file" >"$D/a"
unset KI_NOW
ki export --store "$D/x03" --metric all --out "$D/dump2"
is "$(sha256sum <"$(cat "$D/out")" | cut -c1-64)" "$(cut -c1-64 "$D/a")" 'a second export has the same bytes, whatever the time'
zstd -dc "$file" >"$D/a"
ki export --store "$D/x03" --metric all --format jsonl
same "$D/a" "$D/out" '--format jsonl is the dump, plain'
is "$(jq -c .type "$D/a" | uniq | tr '\n' ' ')" '"object" "case" "run" ' 'objects come first, then cases, then runs'
is "$(jq -r 'select(.type == "run").digest' "$D/a" | sort -c 2>&1)" '' 'runs are in the order of their digests'
is "$(jq -r 'select(.type == "run") | select((.median // .medianBytes) != (.body.spec.timing.latencyNs.median // .body.spec.measurements[0].value))' "$D/a" | wc -l | tr -d ' ')" \
	0 'derived values equal those of the body'
"$B/bin/ki-normalize" --canonical <"$D/a" >"$D/b" 2>/dev/null
same "$D/a" "$D/b" 'every line is canonical JSON'
jq -c 'select(.type != "report") | .body' "$D/a" | "$B/bin/ki-normalize" --digest >"$D/b"
jq -r .digest "$D/a" >"$D/c"
same "$D/c" "$D/b" 'every body has the digest that stands beside it'
ki export --store "$D/x03" --metric all --format json
jq -c '.[]' "$D/out" | "$B/bin/ki-normalize" --canonical >"$D/b"
same "$D/a" "$D/b" '--format json is an array of the same'
if have python3; then
	python3 - "$D/a" "$D/out" <<-'P' >"$D/b" 2>"$D/err"
		import json, sys
		def never(text): raise ValueError(text)
		runs = [json.loads(line, parse_constant=never) for line in open(sys.argv[1])]
		whole = json.load(open(sys.argv[2]), parse_constant=never)
		assert runs == whole
		bad = 0
		for r in runs:
		    m = r.get("body", {}).get("spec", {}).get("sourceNative", {}).get("metrics", {})
		    for k, name in (("ms_50", "median"), ("ms_20", "p20"), ("ms_80", "p80")):
		        if k in m and int(m[k] * 1e6 + 0.5) != r[name]: bad += 1
		print(bad)
	P
	is "$(cat "$D/b")" 0 'X03: strict readers take both, and integers equal the stored ns'
else
	skip 'X03: strict readers take both, and integers equal the stored ns' 'no python3 here'
fi
ki export --store "$D/g07" --format csv --since 2025-05-01 --columns p20_ns,median_ns,p80_ns
is "$(sort "$D/out" | tr '\n' ' ')" '238000,240000,243000 359000,360000,361000 95000,108000,125000 p20_ns,median_ns,p80_ns ' 'CSV has a header and is filtered too'
ki export --store "$D/g07" --since 2025-05-01 --format jsonl
is "$(jq -r 'select(.type == "run") | .body.spec.sourceNative.metrics | "\(.ms_20) \(.ms_50) \(.ms_80)"' "$D/out" | sort | tr '\n' ' ')" \
	'0.095 0.108 0.125 0.238 0.24 0.243 0.359 0.36 0.361 ' 'X03: a filtered dump holds what was asked for, source values as they were'
is "$(jq -r 'select(.type == "object").kind' "$D/out" | sort | uniq -c | tr -s ' \n' ' ')" \
	' 1 BenchmarkProtocol 1 ExecutionEnvironment 1 ImplementationRevision 1 OperationSpec 1 SoftwareProject 3 WorkloadCase ' 'and the objects that those runs cite, no others'
ki export --store "$D/x03" --format xml
is "$rc" 64 'an unknown format is a usage error'
ki export --store "$D/x03" --out /dev/null/x
is "$rc" 66 'a directory that cannot be made is an error'

# --- standard output (X04) ---------------------------------------------------------------------------------------------------------
big=$D/big.csv
table 20000 >"$big"
BIG=$D/big
publish "$BIG" "$big"
if [ -w /dev/full ]; then
	for verb in list status log 'export --format jsonl' 'export --format json' "show $id" check --help; do
		# shellcheck disable=SC2086
		"$KI" $verb --store "$S" >/dev/full 2>"$D/err"
		is "$? $(lines "$D/err")" '74 1' "X04: a full device is an I/O error: $verb"
	done
else
	skip 'X04: a full device is an I/O error' 'no /dev/full here'
fi
for verb in list 'export --format jsonl' status; do
	# shellcheck disable=SC2086
	"$KI" $verb --store "$S" >&- 2>"$D/err"
	is "$? $(lines "$D/err")" '74 1' "X04: a closed standard output is an I/O error: $verb"
done
"$KI" list --store "$S" >&- 2>&- <&-
is "$?" 74 'X04: so it is when nothing is open'
{ "$KI" export --format jsonl --store "$BIG" 2>"$D/err"; echo $? >"$D/a"; } | head -1 >"$D/out"
is "$(lines "$D/out") $(lines "$D/err")" '1 0' 'X04: a reader that leaves early is no error to speak of'
case $(cat "$D/a") in 0 | 141) ok 0 'X04: and ends the program with 0 or by SIGPIPE' ;; *) ok 1 "X04: exit $(cat "$D/a") when a reader leaves" ;; esac
clean "$S" 'none of this harmed the store'
is "$(head -c 4 "$S/lock.mdb" | od -An -tx1 | tr -d ' ')" dec0efbe 'nor its lock file'

# --- large tables and the map (L01) ------------------------------------------------------------------------------------------------
is "$(runs "$BIG")" 20000 'L01: a table of 20,000 rows is published whole'
clean "$BIG" 'L01: and clean'
if sanitized; then
	skip 'L01: a map that does not fit is refused, the store as before' 'sanitizers want all the address space'
else
	publish "$D/l01" $FIXTURES/day-1/input.csv
	before=$(dump "$D/l01")
	"$B/bin/ki-normalize" --quiet "$big" | (ulimit -v 900000 && "$B/bin/ki-store" --store "$D/l01" put 2>"$D/err")
	is "$? $(dump "$D/l01")" "75 $before" 'L01: a map that does not fit is refused, the store as before'
	put "$D/l01" "$big"
	is "$? $(runs "$D/l01")" '0 20003' 'L01: with room it succeeds'
	clean "$D/l01" 'L01: and is clean'
fi

# --- many at once (L02) ------------------------------------------------------------------------------------------------------------
S=$D/l02
rounds=${LONG:+600}
rounds=${rounds:-12}
publish "$S" $FIXTURES/day-1/input.csv
for n in $(seq "$rounds"); do
	table 100 $((n * 100)) >"$D/odd.$n"
	table 100 $((n * 100 + 500000)) >"$D/even.$n"
done
publisher() { # publisher WHICH - its tables one after the other; a lost race is tried again
	local n code
	for n in $(seq "$rounds"); do
		put "$S" "$D/$1.$n" 2>>"$D/$1.err"
		code=$?
		[ $code -eq 0 ] || echo "exit $code" >>"$D/$1.bad"
	done
}
reader() { # reader N - until both have ended
	local last=0 seen
	while [ ! -e "$D/ended" ]; do
		seen=$("$KI" list --store "$S" --format tsv --columns digest 2>>"$D/reader.err" | sort | uniq -c | awk '$1 > 1 { bad = 1 } END { print bad ? -1 : NR }')
		[ "$seen" -ge "$last" ] && [ $(((seen - 3) % 100)) -eq 0 ] || echo "saw $seen after $last" >>"$D/reader.bad"
		last=$seen
		"$KI" status --store "$S" >/dev/null 2>>"$D/reader.err" || echo "status $?" >>"$D/reader.bad"
	done
	echo "$last" >"$D/reader.$1"
}
for n in 1 2 3; do
	reader $n &
	readers="${readers:-} $!"
done
publisher odd &
odd=$!
publisher even
wait $odd
: >"$D/ended"
# shellcheck disable=SC2086
wait $readers
cat "$D"/*.bad "$D/reader.err" >"$D/err" 2>/dev/null
is "$(runs "$S") $(lines "$D/err")" "$((3 + 200 * rounds)) 0" 'L02: two publishers and three readers at once: all rows of both, once; readers see whole publications only'
clean "$S" 'L02: and the store is clean'

# --- readers that are killed (L03) -------------------------------------------------------------------------------------------------
kills=${LONG:+200}
kills=${kills:-15}
rounds=${LONG:+50}
rounds=${rounds:-8}
cp -r "$BIG" "$D/l03"
cp -r "$BIG" "$D/l03twin"
mkfifo "$D/fifo"
ended=0
for n in $(seq "$kills"); do
	"$B/bin/ki-store" list --store "$D/l03" >"$D/fifo" 2>/dev/null &
	reader=$!
	{ read -r line && kill -9 $reader; } <"$D/fifo"
	wait $reader 2>/dev/null
	[ $? -eq 137 ] || ended=$((ended + 1))
done
is $ended 0 "L03: $kills listings are killed in mid-output"
for n in $(seq "$rounds"); do
	table 20 $((n * 1000 + 700000)) >"$D/small.csv"
	put "$D/l03" "$D/small.csv" && put "$D/l03twin" "$D/small.csv" || echo "exit $?" >>"$D/l03.bad"
done
is "$(runs "$D/l03") $([ -e "$D/l03.bad" ] && echo bad)" "$((20000 + 20 * rounds)) " 'L03: after that, publications and lists succeed'
a=$(stat -c %s "$D/l03/data.mdb") b=$(stat -c %s "$D/l03twin/data.mdb")
[ $((a - b)) -le 65536 ] && [ $((b - a)) -le 65536 ]
ok $? "L03: and the file has grown as without them ($a, $b)"

# --- long names (L05) --------------------------------------------------------------------------------------------------------------
publish "$D/l05" $FIXTURES/long-names/input.csv
is "$rc $(runs "$D/l05") $(jq '.publications[0].report.skippedTotal' "$D/l05/report.json")" '0 1 4' 'L05: names of 520 and 608 bytes sink no batch and are counted'
is "$(jq -c '.publications[0].report.skipped | [(.unknown_gpu | length), (.unknown_kernel | length)]' "$D/l05/report.json")" '[2,2]' 'L05: each of them apart'
clean "$D/l05" 'L05: and the store is clean'
for length in 600 190; do
	{ header; for n in 1 2; do row 1024 0.0$n "2025-01-0$n 00:00:00" "0.5.$(printf "%0${length}d" $n)"; done; } >"$D/versions.csv"
	publish "$D/l05" "$D/versions.csv"
done
is "$("$KI" list --store "$D/l05" --format tsv --columns liger_version | awk 'length > 190' | sort -u | wc -l | tr -d ' ')" 2 'L05: labels of 194 bytes that differ in the last byte stay apart, longer ones are rejected'
clean "$D/l05" 'L05: and the store is still clean'
{ header; row 1024 0.01 '2025-01-01 00:00:00' '"0.5""x\y"'; } >"$D/quoted.csv"
publish "$D/quoted" "$D/quoted.csv"
is "$("$KI" list --store "$D/quoted" --format tsv --columns liger_version)|$("$KI" list --store "$D/quoted" --json | jq -r '.ligerVersion, .labels.liger_version' | tr '\n' '|')" \
	'0.5"x\y|0.5"x\y|0.5"x\y|' 'L05: a version with quotes and backslashes is the same in every format'

{ header; row 1024 0.01 '2025-01-01 00:00:00'; row 1024 0.01 '2025-01-02 00:00:00' | sed "s/NVIDIA A100/NVIDIA $(printf '\033')[31m/"; } >"$D/escape.csv"
publish "$D/escape" "$D/escape.csv"
ki report --store "$D/escape" --last
has "$D/out" 'left out: 1 rows, unknown gpu NVIDIA \x1b[31m-SXM4-80GB' 'names of upstream cannot drive a terminal'

# --- names that are cut short ------------------------------------------------------------------------------------------------------
{ header; for n in 1 2 3 4 5 6 7 8 9; do row 1024 0.0$n "2025-01-01 00:00:0$n" 0.5.5 huggingface; done; } >"$D/alike.csv"
publish "$D/alike" "$D/alike.csv"
ki show --store "$D/alike" "$(column "$D/alike" name --limit 1)"
is "$rc $(lines "$D/err") $(grep -cE '^  [0-9a-f]{16}  rms_norm/forward/huggingface/.*/2025-01-01-00-00-0[1-8]$' "$D/err")" '64 9 8' \
	'an ambiguous name lists its first eight candidates, each whole'

# --- files that are cut (L06) ------------------------------------------------------------------------------------------------------
half=$(($(stat -c %s "$BIG/data.mdb") / 2))
for size in 1 4096 8192 $half $(($(stat -c %s "$BIG/data.mdb") - 4096)); do
	rm -rf "$D/l06"
	mkdir "$D/l06"
	cp "$BIG/data.mdb" "$D/l06/data.mdb"
	truncate -s "$size" "$D/l06/data.mdb"
	sum=$(sha256sum <"$D/l06/data.mdb")
	for verb in check list 'export --format jsonl' status "backup $D/l06b" "nightly --snapshot $big --commit 111111111111"; do
		# shellcheck disable=SC2086
		ki $verb --store "$D/l06"
		is "$rc $(lines "$D/err")" '80 1' "L06: cut to $size bytes, ${verb%% *} says that the store is damaged"
	done
	put "$D/l06" "$big" 2>"$D/err"
	is "$? $(sha256sum <"$D/l06/data.mdb")" "80 $sum" "L06: cut to $size bytes, it is not written to"
done
rm -rf "$D/l06"
mkdir "$D/l06"
head -c 100000 /dev/zero | tr '\0' x >"$D/l06/data.mdb"
ki list --store "$D/l06"
is "$rc $(lines "$D/err")" '80 1' 'L06: a file that is no catalog is refused'

# --- bytes that change -------------------------------------------------------------------------------------------------------------
damaged=0 signals=0 silent=0
rm -rf "$D/bytes"
cp -r "$D/x03" "$D/bytes"
size=$(stat -c %s "$D/bytes/data.mdb")
body_dump() { # body_dump STORE - what digests protect, and what is derived from it
	"$KI" export --store "$1" --metric all --format jsonl 2>/dev/null | jq -c '[.type, .digest, .body, .metadata, .case, .rank, .cohortSize, .median]' 2>/dev/null | sha256sum
}
wanted=$(dump "$D/x03")
bodies=$(body_dump "$D/x03")
rounds=${LONG:+400}
for n in $(seq "${rounds:-25}"); do
	cp "$D/x03/data.mdb" "$D/bytes/data.mdb"
	at=$(((n * 7919 * 4096 + n * 1237) % (size - 8192) + 8192))
	printf '\377\376\375' | dd of="$D/bytes/data.mdb" bs=1 seek=$at conv=notrunc 2>/dev/null
	"$B/bin/ki-store" check --store "$D/bytes" >/dev/null 2>&1
	code=$?
	[ $code -eq 80 ] && damaged=$((damaged + 1))
	[ $code -gt 128 ] && signals=$((signals + 1)) && echo "# signal $((code - 128)) after byte $at"
	[ $code -eq 0 ] && [ "$(body_dump "$D/bytes")" != "$bodies" ] && silent=$((silent + 1)) && echo "# unseen change of byte $at"
done
is "$silent" 0 'changed bytes never pass check and show other records'
echo "# $damaged found, $signals ended by a signal in LMDB"

# --- backups (L08) -----------------------------------------------------------------------------------------------------------------
S=$D/l08
rounds=${LONG:+100}
rounds=${rounds:-8}
publish "$S" $FIXTURES/day-1/input.csv
(
	n=0
	while [ ! -e "$D/backed-up" ]; do
		n=$((n + 1))
		table 50 $((n * 1000)) >"$D/l08.csv"
		put "$S" "$D/l08.csv" || echo "exit $?" >>"$D/l08.bad"
	done
) &
writer=$!
for n in $(seq "$rounds"); do
	ki backup --store "$S" "$D/backup.$n"
	[ $rc -eq 0 ] || echo "backup $rc $(cat "$D/err")" >>"$D/l08.bad"
done
: >"$D/backed-up"
wait $writer
for n in $(seq "$rounds"); do
	ki check --store "$D/backup.$n"
	[ $rc -eq 0 ] || echo "check $n: $rc" >>"$D/l08.bad"
	"$KI" status --store "$D/backup.$n" --json | jq -e '.runs == 3 + 50 * (.publications - 1)' >/dev/null || echo "state $n" >>"$D/l08.bad"
	"$KI" export --store "$D/backup.$n" --format jsonl >/dev/null || echo "export $n" >>"$D/l08.bad"
done
cat "$D/l08.bad" >"$D/err" 2>/dev/null || : >"$D/err"
is "$(lines "$D/err")" 0 "L08: $rounds backups while tables are published are clean, each a state that existed"
is "$(cd "$D/backup.1" && find snapshots -type f | wc -l | tr -d ' ')" "$(cd "$S" && find snapshots -type f ! -path '*/state/*' | wc -l | tr -d ' ')" 'L08: a backup has the kept snapshots'
mkdir -p "$S/evidence" "$S/samples" && echo line >"$S/evidence/a.jsonl" && echo block >"$S/samples/b.json.zst"
ki backup --store "$S" "$D/backup.evidence"
is "$rc $(cat "$D/backup.evidence/evidence/a.jsonl" "$D/backup.evidence/samples/b.json.zst" | tr '\n' ' ')" '0 line block ' 'a backup has what reruns were imported from'
ki backup --store "$S" "$D/backup.1"
is "$rc" 64 'L08: a backup goes to a new name'
cp -r "$BIG" "$D/l08big"
for n in 1 2 3 4 5; do
	"$B/bin/ki-store" backup --store "$D/l08big" "$D/killed.$n" 2>/dev/null &
	sleep "0.00$n"
	kill -9 $! 2>/dev/null
	wait $! 2>/dev/null
	[ ! -e "$D/killed.$n" ] || "$KI" check --store "$D/killed.$n" >/dev/null || echo "killed $n" >>"$D/l08.bad"
done
is "$(cat "$D/l08.bad" 2>/dev/null)" '' 'L08: a killed backup leaves nothing under its name, or all of it'

# --- durability (L11) --------------------------------------------------------------------------------------------------------------
if have strace; then
	"$B/bin/ki-normalize" --quiet $FIXTURES/day-2/input.csv >"$D/wire"
	ASAN_OPTIONS=detect_leaks=0 strace -y -e trace=write,pwrite64,fdatasync,fsync,msync -o "$D/trace" "$B/bin/ki-store" --store "$D/g01" put --json \
		<"$D/wire" >"$D/out" 2>"$D/err"
	is "$? $(jq .newRuns "$D/out")" '0 3' 'L11: a publication is traced'
	synced=$(grep -n 'fdatasync([0-9]*<.*/data.mdb>) *= 0' "$D/trace" | tail -1 | cut -d: -f1)
	told=$(grep -n '^write(1<' "$D/trace" | head -1 | cut -d: -f1)
	last=$(grep -n 'pwrite64([0-9]*<.*/data.mdb>' "$D/trace" | tail -1 | cut -d: -f1)
	[ -n "$synced" ] && [ "$synced" -lt "$told" ] && [ "$last" -lt "$told" ]
	ok $? "L11: data is synced (line ${synced:-none}) and the last page written ($last) before success is told ($told)"
	# LMDB writes its meta page through a descriptor that syncs every write.
	ASAN_OPTIONS=detect_leaks=0 strace -e trace=openat -o "$D/trace" "$B/bin/ki-store" --store "$D/g01" put --json <"$D/wire" >"$D/out" 2>"$D/err"
	grep -q 'data.mdb", O_WRONLY|O_DSYNC' "$D/trace"
	ok $? 'L11: the meta page is written with O_DSYNC'
	while read -r name magic; do
		ASAN_OPTIONS=detect_leaks=0 strace -e trace=statfs -e "inject=statfs:poke_exit=@arg2=$magic" -o "$D/trace" \
			"$B/bin/ki-store" --store "$D/g01" list >"$D/out" 2>"$D/err"
		is "$? $(grep -c "^ki-store: warning: $D/g01: is on $name, where locks and shared maps may fail" "$D/err")" '0 1' "L11: a store on $name is warned of"
	done <<-'L'
		NFS 6969000000000000
		FUSE 4655736500000000
		9P 9719020100000000
	L
else
	skip 'L11: a publication is synced before success is told' 'no strace here'
fi

# --- a full disk (L12) -------------------------------------------------------------------------------------------------------------
if [ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null; then
	mkdir "$D/small"
	cat >"$D/full.sh" <<-'P'
		mount -t tmpfs -o size=4m none "$D/small" || exit 9
		. tests/tap.sh >/dev/null
		trap - EXIT
		E=$1
		S=$E/small/store
		for n in 1 2 3 4 5 6 7 8 9 10 11 12; do
			table 4000 $((n * 4000)) >"$E/full.csv"
			"$KI" nightly --quiet --store "$S" --snapshot "$E/full.csv" --commit "$(printf '%012d' "$n")" >"$E/out" 2>"$E/err"
			code=$?
			[ $code -eq 0 ] || break
		done
		[ $code -eq 74 ] || { echo "exit $code"; exit 1; }
		grep -q 'No space left on device' "$E/err" || exit 2
		held=$("$KI" list --store "$S" --format tsv --columns digest | wc -l)
		[ "$held" -eq $(((n - 1) * 4000)) ] || [ "$held" -eq $((n * 4000)) ] || { echo "held $held, n $n"; exit 3; }
		"$KI" check --store "$S" >"$E/out" 2>&1 || exit 4
		rm -f "$S/lock.mdb" # whose room is not there either
		dd if=/dev/zero of="$E/small/fill" bs=1k 2>"$E/err"
		"$KI" list --store "$S" >"$E/out" 2>"$E/err"
		[ $? -eq 74 ] || exit 11
		rm "$E/small/fill"
		mount -o remount,size=32m "$E/small" || exit 9
		"$KI" nightly --quiet --store "$S" --snapshot "$E/full.csv" --commit "$(printf '%012d' "$n")" >"$E/out" 2>"$E/err" || exit 5
		[ "$("$KI" list --store "$S" --format tsv --columns digest | wc -l)" -eq $((n * 4000)) ] || exit 6
		"$KI" check --store "$S" >"$E/out" 2>&1 || exit 7
		[ "$(zstd -dc "$S/export/$(jq -r .file "$S/export/latest.json")" | jq -r 'select(.type == "run").digest' | wc -l)" -eq $((n * 4000)) ] || exit 8
		find "$S" -name '*.tmp.*' | grep . && exit 10
		exit 0
	P
	D=$D B=$B unshare -m sh "$D/full.sh" "$D" >"$D/a" 2>&1
	code=$?
	sed 's/^/# /' "$D/a"
	if [ $code -eq 9 ]; then
		skip 'L12: a full disk is an I/O error; what was published stays readable; with room the next run completes' 'no tmpfs here'
	else
		is $code 0 'L12: a full disk is an I/O error; what was published stays readable; with room the next run completes'
	fi
else
	skip 'L12: a full disk is an I/O error; what was published stays readable; with room the next run completes' 'not root'
fi

# --- readers without write permission (L14) ------------------------------------------------------------------------------------------
S=$D/x03
if [ "$(id -u)" -eq 0 ] && have setpriv && setpriv --reuid=65534 --regid=65534 --clear-groups "$KI" --help >/dev/null 2>&1; then
	chmod 755 "$D"
	other() {
		setpriv --reuid=65534 --regid=65534 --clear-groups "$KI" "$@" >"$D/out" 2>"$D/err"
		rc=$?
	}
	for verb in list check 'export --format jsonl'; do
		# shellcheck disable=SC2086
		other $verb --store "$S"
		case "$rc $(lines "$D/err")" in '0 0' | '77 1') ok 0 "L14: a user who may only read can $verb, or is told why not (exit $rc)" ;;
		*) ok 1 "L14: a user who may only read: $verb exits $rc" ;; esac
	done
	other nightly --store "$S" --snapshot $FIXTURES/day-1/input.csv --commit 111111111111
	is "$rc $(lines "$D/err")" '77 1' 'L14: and may not publish'
	chmod 700 "$S"
	other list --store "$S"
	is "$rc" 77 'L14: a store that may not be entered is not permitted'
	chmod 755 "$S"
else
	skip 'L14: a user who may only read can list, or is told why not' 'not root, or no setpriv here'
fi
if [ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null; then
	mkdir "$D/ro"
	# shellcheck disable=SC2016
	unshare -m sh -c 'mount --bind "$1" "$2" && mount -o remount,bind,ro "$2" || exit 9
		"$3" list --store "$2" >"$4/a" || exit 1
		"$3" check --store "$2" >/dev/null || exit 2
		"$3" export --store "$2" --metric all --format jsonl >"$4/b" || exit 3
		"$3" nightly --store "$2" --snapshot fixtures/csv/day-1/input.csv --commit 111111111111 >/dev/null 2>"$4/err"
		[ $? -eq 77 ] || exit 4' sh "$S" "$D/ro" "$KI" "$D"
	code=$?
	if [ $code -eq 9 ]; then
		skip 'L14: on a read-only file system all reading works' 'no bind mounts here'
	else
		is "$code $(lines "$D/a") $(sha256sum <"$D/b" | cut -c1-64)" "0 $("$KI" list --store "$S" | wc -l | tr -d ' ') $wanted" 'L14: on a read-only file system all reading works, and publishing is not permitted'
	fi
else
	skip 'L14: on a read-only file system all reading works' 'not root'
fi

# --- kept snapshots (X01) ------------------------------------------------------------------------------------------------------------
S=$D/x01
sum=$(sha256sum <$FIXTURES/day-2/input.csv | cut -c1-64)
kept=$S/snapshots/$(echo "$sum" | cut -c1-2)/$sum
for wrong in '' 'something else'; do
	rm -rf "$S"
	publish "$S" $FIXTURES/day-1/input.csv
	mkdir -p "$(dirname "$kept")"
	printf '%s' "$wrong" >"$kept"
	ki check --store "$S"
	is "$rc $(grep -c "snapshot $sum has other bytes" "$D/out")" '80 1' "X01: check finds a snapshot that holds \"$wrong\""
	publish "$S" $FIXTURES/day-2/input.csv
	cmp -s $FIXTURES/day-2/input.csv "$kept"
	is "$? $rc" '0 0' 'X01: the run that makes that snapshot replaces it'
done
clean "$S" 'X01: after that all is clean'

# --- upstream's files, as published --------------------------------------------------------------------------------------------------
if [ ! -d "$SHARED/golden" ]; then
	skip "the newest main file has the published digests, keys and ranks" 'no ../shared here'
	plan
fi
U=$SHARED/upstream/committed/2026-08-10T22-36-34Z-2120862ba532.csv
S=$D/golden
publish "$S" "$U" 2120862ba532c9449e72d603ba6324310ae756e7
is "$rc $("$KI" status --store "$S" --json | jq -c '[.runs, .publications]')" '0 [2448,1]' 'the newest main file gives 1,649 times and 799 memory values'
golden=$SHARED/golden/committed-2120862ba532/runs.jsonl
jq -r '[.externalId, .name, .title, .digest, .observedAt, .median, .p20, .p80, .operation, .workload, .implementation, .protocol, .environment, .comparisonKey, .rank, .tied, .cohortSize] | @tsv' \
	"$golden" | sort >"$D/a"
list "$S" --columns external_id,name,title,digest,observed_at,median_ns,p20_ns,p80_ns,operation,workload,implementation,protocol,environment,comparison_key,rank,tied,cohort_size
sort "$D/out" >"$D/b"
is "$(lines "$D/b")" 1649 'all 1,649 are listed'
same "$D/a" "$D/b" 'each with the published digest, comparison key, rank, tie and cohort size, name, title, time and values'
ki list --store "$S" --json
jq -r '[.externalId, .name, .title, .digest, .observedAt, .median, .p20, .p80, .operation, .workload, .implementation, .protocol, .environment, .comparisonKey, .rank, .tied, .cohortSize] | @tsv' \
	"$D/out" | sort >"$D/b"
same "$D/a" "$D/b" 'JSON names the fields as the published records do'
ki export --store "$S" --format jsonl
cp "$D/out" "$D/golden.jsonl"
jq -cS '[.name, .identity, .labels.liger_version]' "$SHARED/golden/committed-2120862ba532/run_identities.jsonl" | sort >"$D/a"
jq -cS 'select(.type == "run") | [.name, .body, .labels.liger_version]' "$D/golden.jsonl" | sort >"$D/b"
same "$D/a" "$D/b" 'bodies and versions in the dump are the published ones'
jq -cS '[.digest, .identity]' "$SHARED/golden/committed-2120862ba532/objects.jsonl" | sort >"$D/a"
jq -cS 'select(.type == "object") | [.digest, .body]' "$D/golden.jsonl" | sort >"$D/b"
same "$D/a" "$D/b" 'and so are the objects, none missing and none more'
awk -F, '$4 == "speed" { printf "%.17g\n", $9 }' "$U" | sort >"$D/a"
jq -r 'select(.type == "run") | .body.spec.sourceNative.metrics.ms_50 | @text' "$D/golden.jsonl" | awk '{ printf "%.17g\n", $1 }' | sort >"$D/b"
same "$D/a" "$D/b" 'X03: source values in the dump parse back to the doubles of the file'
clean "$S" 'and the store is clean'

facts() { # facts NAME FACT... - each must stand in what show prints
	local name=$1 fact
	shift
	for fact in "$@"; do
		has "$D/out" "$fact" "record $name prints $fact"
	done
}
ki show --store "$S" fused_neighborhood_attention/backward/torch/nvidia-geforce-rtx-3090/batch4-dilation1-heads12-hidden768-kernel_size7-seq2048-fp32/2025-05-27-15-10-05
is "$rc $(head -1 "$D/out")" '0 fused_neighborhood_attention/backward/torch/nvidia-geforce-rtx-3090/batch4-dilation1-heads12-hidden768-kernel_size7-seq2048-fp32/2025-05-27-15-10-05' \
	'record A is shown by its external id'
facts A 'ms_20 24.077312469482422 · ms_50 24.104448318481445 · ms_80 24.161880493164062' '24077312 ns' '24104448 ns' '24161880 ns' '24.1 ms' \
	sha256:521a0b1ea67f4bccad75b0d7022a153d94d2e1f54d3b3fc8d77c41310b88b107 'comparison key   sha256:26ef57272cd81d16' 'rank             2 of 2' \
	'seq = 2048 · batch = 4 · heads = 12 · hidden = 768 · dilation = 1 · kernel_size = 7 · fp32' 2025-05-27T15:10:05.000Z 'Fused neighborhood attention · torch · backward' \
	'NVIDIA GeForce RTX 3090' 'passed' 'reported' 'committed 2120862ba532' 'not_asserted' 'triton.testing.do_bench'
ki show --store "$S" rope/backward/huggingface/nvidia-a100-sxm4-80gb/hidden8192-kv_heads8-q_heads32-seq2048-bf16/2024-09-03-15-39-59
is "$rc $(head -1 "$D/out")" '0 rope/backward/huggingface/nvidia-a100-sxm4-80gb/hidden8192-kv_heads8-q_heads32-seq2048-bf16/2024-09-03-15-39-59' 'so is record B'
facts B 'ms_20 0.6208000183105469 · ms_50 0.621504008769989 · ms_80 0.6223679780960083' '620800 ns' '621504 ns' '622368 ns' '621.5 µs' \
	sha256:c3252a98ba487075f12047e8fc1ecd6dc156a9144e5fc5a6619de6954416fcf6 'comparison key   sha256:63b583a3afe1e4d7' 'rank             4 of 4' \
	'Hugging Face Transformers' 'Apache-2.0' 'NVIDIA A100' 'SXM4-80GB' 'sm_80'
ki show --store "$S" --json c3252a98ba487075
is "$(jq -c '[.median, .rank, .cohortSize, .manifest.kind, .manifest.spec.sourceNative.metrics.ms_50, .cites.operation.spec.family, .publications[0].commit]' "$D/out")" \
	'[621504,4,4,"BenchmarkRun",0.621504008769989,"rope","2120862ba532c9449e72d603ba6324310ae756e7"]' '--json gives record B whole'
jq -c .manifest "$D/out" | "$B/bin/ki-normalize" --digest >"$D/a"
is "$(cat "$D/a")" sha256:c3252a98ba487075f12047e8fc1ecd6dc156a9144e5fc5a6619de6954416fcf6 'with the manifest that has its digest'

key=$("$KI" list --store "$S" --format tsv --columns comparison_key,kernel | awk -F'\t' '{ if ($1 in k && k[$1] != $2) { print $1; exit } k[$1] = $2 }')
ki cohort --store "$S" "$key"
is "$rc $(grep -c '^note: holds 2 kernels whose published contracts coincide' "$D/out")" '0 1' 'a group that two GRPO kernels share keeps its key and says so'
list "$S" --columns comparison_key,kernel,rank,kernel_rank,cohort_size
grep "^$key" "$D/out" | sort -t"$(printf '\t')" -k2,2 -k4,4n | cut -f2,4 >"$D/a"
cut -f1 "$D/a" | uniq -c | awk '{ for (i = 1; i <= $1; i++) print $2 "\t" i }' >"$D/b"
same "$D/b" "$D/a" 'and each kernel is ranked on its own beside the published rank'
ki show --store "$S" "$("$KI" list --store "$S" --format tsv --columns comparison_key,digest | grep -m1 "^$key" | cut -f2)"
has "$D/out" 'the group holds 2 kernels whose published contracts coincide' 'show says so too'
# A number that canonical text writes with 21 digits.
{ header; row 4096 0.1 '2025-01-01 00:00:00' | sed 's/1e-06/1e20/'; } >"$D/large.csv"
put "$D/large" "$D/large.csv" 2120862ba532
ki check --store "$D/large"
is $rc 0 'a store with a scalar beyond 64 bits is whole'
ki show rms_norm/forward/liger/nvidia-a100-sxm4-80gb/hidden4096-rows2048-bf16/2025-01-01-00-00-00 --json --store "$D/large"
has "$D/out" '"value":100000000000000000000' 'and shows it'

plan
