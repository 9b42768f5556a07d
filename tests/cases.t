#!/bin/sh
# The cases of fixtures/cases.tsv: each is run by the test that the list names, no input is left out, and every table comes to its
# counts. Then what the other tests do not say of a case.
cd "$(dirname "$0")/.." && . tests/tap.sh

FIXTURES=fixtures/csv
clean() { # clean SENTENCE - store $S
	ki check --store "$S"
	is "$rc $(cut -d: -f1 "$D/out")" '0 clean' "$1"
}
N=$B/bin/ki-normalize
TAB=$(printf '\t')
grep -v '^#' fixtures/cases.tsv >"$D/list"

# --- the list itself --------------------------------------------------------------------------------------------------------------
named=0 missing=
while IFS=$TAB read -r id input copy test _; do
	named=$((named + 1))
	if [ "$copy" != - ]; then
		[ -f "$copy" ] || missing="$missing $copy"
	elif [ "$input" != - ]; then
		grep -qF "${input%.*}" "$test" || missing="$missing $test:$input"
	else
		grep -qE "(^|[^0-9A-Z])$id([^0-9]|\$)" "$test" || missing="$missing $test:$id"
	fi
done <"$D/list"
is "$named$missing" 84 'every case has its input in the tree, or is named by the test that runs it'
is "$(cut -f1 "$D/list" | sort -u | wc -l | tr -d ' ')" 61 'there are 61 cases'

wrong= tables=0
while IFS=$TAB read -r _ input copy _ rows published left; do
	case $input in *.csv) ;; *) continue ;; esac
	tables=$((tables + 1))
	report=$("$N" --quiet --report "$copy" 2>/dev/null)
	code=$?
	if [ "$rows" = refused ]; then
		[ "$code$report" = 65 ] || wrong="$wrong $input"
	else
		[ "$(printf %s "$report" | jq -r '"\(.rows) \(.bound - .duplicates) \(.rejectedTotal + .skippedTotal + .duplicates)"')" = "$rows $published $left" ] ||
			wrong="$wrong $input"
	fi
done <"$D/list"
is "$tables$wrong" 35 'each of 35 tables has the stated rows published and left out, or is refused whole'

if [ -d "$CASES" ]; then
	other=$(while IFS=$TAB read -r _ input copy _; do
		[ "$copy" = - ] || cmp "$CASES/$input" "$copy" 2>&1
	done <"$D/list")
	is "$other" '' 'copies have the bytes of the inputs'
	{ cut -f2 "$D/list" | grep -v '^-$'; printf '%s\n' expected_csv.tsv replay_server.py; } | sort -u >"$D/a"
	find "$CASES" -type f -printf '%f\n' | sort >"$D/b"
	same "$D/b" "$D/a" 'no input is left out'
	grep -o '^| [A-Z][0-9][0-9] ' "$CASES/../log.md" | tr -d '| ' | sort >"$D/b"
	cut -f1 "$D/list" | sort -u >"$D/a"
	same "$D/b" "$D/a" 'no case is left out'
	# Where one outcome is stated, it is this one; elsewhere several are right.
	awk -F'\t' 'NR == FNR { want[$2] = $5 " " $6 " " $7; next }
		$2 $3 $4 ~ /^[0-9]+$/ && want[$1] !~ /^refused/ { if (want[$1] != $2 " " $3 " " $4) print $1; n++ } END { print n }' "$D/list" "$CASES/expected_csv.tsv" >"$D/a"
	is "$(cat "$D/a")" 25 'the counts are those that were stated with the inputs'
else
	skip 'copies have the bytes of the inputs, and nothing is left out' 'no ../shared here'
fi

# --- csv --------------------------------------------------------------------------------------------------------------------------
publish "$D/c01" $FIXTURES/byte-order-mark/input.csv
kept=$(find "$D/c01/snapshots" -type f -size +0 | grep -E '/[0-9a-f]{64}$')
is "$rc $(basename "$kept")" "0 $(sha256sum <$FIXTURES/byte-order-mark/input.csv | cut -c1-64)" 'C01: the snapshot has the digest of all bytes, mark included'
cmp -s "$kept" $FIXTURES/byte-order-mark/input.csv
ok $? 'C01: and holds them'
publish "$D/c04" $FIXTURES/day-1/input.csv
before=$("$KI" export --store "$D/c04" --metric all --format jsonl | sha256sum)
for name in open-quote open-quote-last-record lfs-pointer html-page columns-missing; do
	publish "$D/c04" $FIXTURES/$name/input.csv
	is "$rc $("$KI" export --store "$D/c04" --metric all --format jsonl | sha256sum)" "65 $before" "C04, C10, C15: $name is refused, the catalog as before"
done
"$N" --quiet $FIXTURES/newlines-in-quotes/input.csv >"$D/a" 2>/dev/null
is "$(jq -r 'select(.type == "case") | .body.config, .body.xLabel' "$D/a" | sed -n 1,3p | od -An -c | tr -d ' \n')" \
	'{"M":2048,\n"dtype":"torch.bfloat16",\r\n"eps":1e-06}\n' 'C06: LF and CRLF inside a quoted config are kept'
is "$(jq -c 'select(.type == "case") | .body.xLabel' "$D/a" | tail -1)" '"hidden\nsize"' 'C06: and inside a label'
publish "$D/c08" $FIXTURES/empty-fields/input.csv
is "$rc $("$KI" list --store "$D/c08" --json | jq -c '[.ligerVersion, .labels.liger_version]')" '1 [null,null]' 'C08: an empty version is absent'
publish "$D/c14" $FIXTURES/not-utf8/input.csv
"$KI" export --store "$D/c14" --format json >"$D/a" && iconv -f UTF-8 -t UTF-8 "$D/a" | jq -e 'length > 0' >/dev/null
is "$? $rc $(runs "$D/c14")" '0 1 2' 'C14: the dump of a table with a row that is not UTF-8 is UTF-8 and JSON'

# --- numbers and times ------------------------------------------------------------------------------------------------------------
{ header; grep -v '^#' fixtures/canonical/ms-to-ns.tsv | cut -f1 | awk '{ printf "rms_norm,liger,forward,speed,ms,H,hidden size,1024,%s,,,\"{\"\"M\"\": 2048, \"\"dtype\"\": \"\"torch.bfloat16\"\", \"\"eps\"\": 1e-06}\",NVIDIA H200,2025-01-01 00:%02d:%02d,0.5.5\r\n", $1, NR / 60, NR % 60 }'; } >"$D/ms.csv"
if localedef -i de_DE -f UTF-8 "$D/de" 2>/dev/null; then
	for table in "$D/ms.csv" $FIXTURES/config-number-spellings/input.csv; do
		LC_ALL=C "$N" --quiet "$table" >"$D/a" 2>&1
		LOCPATH=$D LC_ALL=de "$N" --quiet "$table" >"$D/b" 2>&1
		same "$D/a" "$D/b" "P09: a locale with a decimal comma plays no part in $(lines "$table") lines"
	done
else
	skip 'P09: a locale with a decimal comma plays no part' 'no de_DE locale can be made here'
fi
"$N" --quiet "$D/ms.csv" | jq -r 'select(.type == "run") | .body.spec.timing.latencyNs.median' | sort >"$D/a"
grep -v '^#' fixtures/canonical/ms-to-ns.tsv | cut -f2 | awk '$1 > 0' | sort >"$D/b"
same "$D/b" "$D/a" 'N01: all times of the list come out as stated in whole records too'
instants() { # instants FIXTURE - in the order of the file
	"$N" --quiet $FIXTURES/"$1"/input.csv | jq -r 'select(.type == "run") | .body.spec.observedAt' | tr '\n' ' '
}
unset TZ
for zone in '' UTC America/Los_Angeles Asia/Kolkata Europe/Berlin; do
	[ -z "$zone" ] || export TZ=$zone
	is "$(instants times-near-dst)" '2025-03-09T02:30:00.000Z 2025-11-02T01:30:00.000Z 2025-03-30T02:15:00.000Z 2024-02-29T23:59:59.000Z 2025-01-01T00:00:00.000Z ' \
		"T01: times are those of the file with TZ ${zone:-unset}"
done
unset TZ
is "$(instants times-with-zone)" '2025-01-31T01:27:42.000Z 2025-01-31T01:27:42.000Z 2025-01-30T23:27:42.000Z 2025-01-31T01:27:42.500Z ' 'T04: an offset and a fraction count'

# --- exports (X03) ----------------------------------------------------------------------------------------------------------------
S=$D/x03
while IFS=$TAB read -r _ input copy _ rows _; do
	case $input in *.csv) [ "$rows" = refused ] || printf '%s\n' "$copy" ;; esac
done <"$D/list" | sort -u >"$D/accepted"
while read -r copy; do
	put "$S" "$copy" 2>/dev/null
done <"$D/accepted"
clean 'X03: all accepted cases in one store leave it clean'
"$KI" export --store "$S" --metric all --format jsonl >"$D/lines.jsonl"
"$KI" export --store "$S" --metric all --format json >"$D/array.json"
is "$(jq -c 'select(.type == "run").digest' "$D/lines.jsonl" | sort -u | wc -l | tr -d ' ')" "$(runs "$S")" "X03: all accepted cases are in one dump ($(runs "$S") runs)"
jq -c '.[]' "$D/array.json" | "$N" --canonical >"$D/a"
same "$D/lines.jsonl" "$D/a" 'X03: a line is an object, and the array holds the same'
"$KI" export --store "$S" --metric all --format jsonl >"$D/a"
same "$D/lines.jsonl" "$D/a" 'X03: a second dump has the same bytes'
if have python3; then
	# shellcheck disable=SC2046
	python3 - "$D/lines.jsonl" "$D/array.json" $(cat "$D/accepted") <<-'P' >"$D/b" 2>"$D/err"
		import csv, json, math, sys
		def never(text): raise ValueError(text)
		runs = [r for r in (json.loads(line, parse_constant=never) for line in open(sys.argv[1])) if r["type"] == "run"]
		json.load(open(sys.argv[2]), parse_constant=never)
		published = set()
		for name in sys.argv[3:]:
		    for row in csv.reader(open(name, newline="", encoding="latin-1")):
		        for field in row:
		            try: published.add(float(field))
		            except ValueError: pass
		bad = 0
		for r in runs:
		    metrics = r["body"]["spec"]["sourceNative"]["metrics"]
		    bad += any(value not in published for value in metrics.values())
		    bad += "ms_50" in metrics and r["median"] != math.floor(metrics["ms_50"] * 1e6 + 0.5)
		print(len(runs), bad)
	P
	is "$(cat "$D/b")" "$(runs "$S") 0" 'X03: strict readers take both; source values are doubles of the tables, integers their nanoseconds'
else
	skip 'X03: strict readers take both' 'no python3 here'
fi

# --- the same work timed another way (G08) -----------------------------------------------------------------------------------------
digest() {
	"$N" --digest
}
timed() { # timed GPU L2 WARMUPS SECOND MS - publishes a rerun of one row by a method of its own
	local wire=$D/timed.jsonl old new old_case new_case
	{ header; row 4096 "$5" "2025-01-01 00:00:0$4" | sed "s/NVIDIA A100-SXM4-80GB/$1/"; } >"$D/timed.csv"
	"$N" --quiet "$D/timed.csv" >"$wire"
	old=$(jq -r 'select(.body.kind == "BenchmarkProtocol").digest' "$wire")
	jq -cj --arg l2 "$2" --argjson warmups "$3" 'select(.body.kind == "BenchmarkProtocol").body | .spec.harness.name = "rerun of ours"
		| .spec.comparability.notes = "L2 \($l2)" | .spec.measurement.warmupIterations = $warmups' "$wire" |
		"$N" --canonical >"$D/protocol"
	new=$(digest <"$D/protocol")
	jq -c --slurpfile body "$D/protocol" 'if .body.kind == "BenchmarkProtocol" then .body = $body[0] else . end' "$wire" | sed "s/$old/$new/g" |
		"$N" --canonical >"$D/cited.jsonl"
	old_case=$(jq -r 'select(.type == "case").digest' "$D/cited.jsonl")
	new_case=$(jq -c 'select(.type == "case").body' "$D/cited.jsonl" | digest)
	sed "s/$old_case/$new_case/g" "$D/cited.jsonl" >"$D/cases.jsonl"
	new=$(jq -c 'select(.type == "run").body' "$D/cases.jsonl" | digest)
	jq -c --arg digest "$new" --arg file "$(printf %s "$*" | sha256sum | cut -c1-64)" 'if .type == "run" then .digest = $digest
		elif .type == "snapshot" then .sha256 = "sha256:\($file)" | .commit = $file[:40] else . end' "$D/cases.jsonl" | "$N" --canonical |
		"$B/bin/ki-store" --store "$S" --quiet put
}
S=$D/g08
{ header; row 4096 0.100 '2024-12-31 00:00:00'; } >"$D/reported.csv"
publish "$S" "$D/reported.csv"
reported=$("$KI" list --store "$S" --format tsv --columns digest,median_ns)
for gpu in 'NVIDIA A100-SXM4-80GB' 'NVIDIA H200'; do
	timed "$gpu" cold 0 1 0.100
	timed "$gpu" cold 200 2 0.099
	timed "$gpu" warm 0 3 0.070
	timed "$gpu" warm 200 4 0.069
done
clean 'G08: reruns with cold and warm L2, 0 and 200 warm-ups, on two GPUs are published'
is "$("$KI" list --store "$S" --format tsv --columns comparison_key | sort | uniq -c | awk '{ print $1 }' | tr '\n' ' ')" '1 1 1 1 1 1 1 1 1 ' \
	'G08: each method and each GPU is a group of its own, apart from what was reported'
"$KI" list --store "$S" --format tsv --columns digest,median_ns | grep -qxF "$reported"
ok $? 'G08: the reported record is as it was'
rerun() { # rerun GPU SECOND - its digest
	"$KI" list --store "$S" --gpu "$1" --format tsv --columns digest,observed_at | grep "2025-01-01T00:00:0$2" | cut -f1
}
a=$(rerun 'NVIDIA H200' 1) b=$(rerun 'NVIDIA H200' 3) c=$(rerun 'NVIDIA A100-SXM4-80GB' 1)
ki compare --store "$S" "$a" "$b"
is "$rc $(grep '^not comparable' "$D/out")" '0 not comparable: protocol differs' 'G08: another method is not comparable'
ki compare --store "$S" "$a" "$c"
is "$rc $(grep '^not comparable' "$D/out")" '0 not comparable: gpu differs' 'G08: nor is another GPU'
ki show --store "$S" "$a"
has "$D/out" 'L2 cold' 'G08: the method stands with the rerun'
has "$D/out" 'warmupIterations' 'G08: with its warm-ups'
timed 'NVIDIA H200' cold 0 5 0.104
ki compare --store "$S" "$a" "$(rerun 'NVIDIA H200' 5)"
is "$rc $(tail -1 "$D/out")" '0   [2] against [1]: 1.04x (+4.0 %); no spread was published, so nothing is claimed' 'G08: the same method on the same GPU is, and its difference is told'
clean 'G08: and the store is clean'
plan
