#!/bin/sh
# ki nightly end to end: nights one after the other, upstream's history, live fetches from a TLS server on loopback, gates, locks,
# cron. Upstream's files and published digests come from ../shared where it is. KI_TEST_LONG=1: the long loops.
cd "$(dirname "$0")/.." && . tests/tap.sh

FIXTURES=fixtures/csv
SHA1=1111111111111111111111111111111111111111
SHA2=2222222222222222222222222222222222222222
SHA3=3333333333333333333333333333333333333333
dump() { # dump STORE - digest of all that is in it
	"$KI" export --store "$1" --metric all --format jsonl | sha256sum | cut -c1-64
}
exported() { # exported STORE - digest of the newest dump
	jq -r .sha256 "$1/export/latest.json"
}
clean() { # clean STORE SENTENCE
	ki check --store "$1"
	is "$rc $(cut -d: -f1 "$D/out")" '0 clean' "$2"
}
night() { # night OPTION... - on store $S
	ki nightly --store "$S" "$@"
}

# --- replaying a named file -------------------------------------------------------------------------------------------------------
S=$D/replay
night --snapshot $FIXTURES/example/input.csv --commit $SHA1 --dry-run
is "$rc $(cat "$D/out")" '0 ki nightly: would publish committed 111111111111: 22 rows, 22 runs, 22 new, 0 rejected, 0 conflicts' 'a dry run tells what it would publish'
is "$("$KI" list --store "$S" 2>/dev/null | wc -l | tr -d ' ') $(find "$S" -name 'report.json' -o -name 'catalog-*' | wc -l | tr -d ' ')" '0 0' \
	'and publishes, exports and reports nothing'
is "$(find "$S/snapshots" -type f | wc -l | tr -d ' ')" 0 'nor does it keep anything of a named file'
night --snapshot $FIXTURES/example/input.csv --commit $SHA1
is "$rc $(sed 's/; .*//' "$D/out")" '0 ki nightly: committed 111111111111: 22 rows, 22 runs, 22 new, 0 rejected, 0 conflicts' 'a night ends with one line'
is "$(sed 's/.*; //' "$D/out")" "$S/export/$(jq -r .file "$S/export/latest.json")" 'which names the dump'
is "$(jq -c '[.exitCode, .live, .dryRun, .totals.newRuns, .stages, (.publications | length), (.export | length > 0), .durationMs >= 0]' "$S/report.json")" \
	'[0,false,false,22,{"ki-ingest":0,"ki-normalize":0,"ki-store":0},1,true,true]' 'and leaves a report'
before=$(exported "$S")
night --snapshot $FIXTURES/example/input.csv --commit 111111111111
is "$rc $(cat "$D/out") $(exported "$S")" "0 ki nightly: nothing new $before" 'the same file of the same commit, by 12 digits, is nothing new'
night --snapshot $FIXTURES/memory/input.csv --entry 0701bab --json
is "$rc $(jq -c '[.publications[0].channel, .publications[0].entry, .totals.newRuns, .exitCode]' "$D/out")" '0 ["gh-pages","0701bab",5,0]' \
	'an entry belongs to gh-pages; --json prints the report'
night --snapshot $FIXTURES/ragged-rows/input.csv --commit $SHA2
is "$rc $(lines "$D/err") $(jq .publications[0].report.rejectedTotal "$S/report.json")" '1 1 3' 'malformed rows are rejected and told, the others published'
held=$(dump "$S")
night --snapshot $FIXTURES/open-quote/input.csv --commit $SHA3
is "$rc $(dump "$S")" "65 $held" 'a table cut by an open quote is refused, the store as before'
has "$D/err" 'input.csv' 'and named'
night --snapshot $FIXTURES/html-page/input.csv --commit $SHA3
is "$rc $(dump "$S")" "65 $held" 'so is a page that is no table'
night --snapshot $FIXTURES/columns-missing/input.csv --commit $SHA3
is "$rc $(dump "$S")" "65 $held" 'and one that lacks a column'
night --snapshot "$D/none.csv" --commit $SHA3
is "$rc $(dump "$S")" "66 $held" 'a file that is not there is not found'
for wrong in '--snapshot x' "--snapshot x --commit $SHA1 --entry 0701bab" '--commit main --snapshot x' '--no-such-option' 'operand' '--channel nowhere'; do
	# shellcheck disable=SC2086
	night $wrong
	is "$rc $(dump "$S")" "64 $held" "usage error: nightly $wrong"
done
night --snapshot $FIXTURES/example/input.csv --entry 53a37a5
is "$rc $(sed 's/.*conflicts; //; s/; .*//' "$D/out") $("$KI" log --store "$S" | head -1 | sed 's/.* carried, *//')" \
	'0 byte copy of committed 111111111111, which adds nothing 0 new; byte copy of committed 1111111111111111111111111111111111111111' \
	'a drop that is a byte copy of a committed file adds nothing and is said to be one'
night --snapshot $FIXTURES/day-1/input.csv --entry 0701bab
is "$rc $(sed 's/.*conflicts; //; s/; .*//' "$D/out")" '0 upstream has changed it since it was first published' 'a drop that has changed is published anew, and said to have'
held=$(dump "$S")
ki nightly --help
is "$rc $(head -c 17 "$D/out")" '0 usage: ki nightly' '--help helps'
ki nightly --store "$S" --config "$D" --snapshot $FIXTURES/day-1/input.csv --commit $SHA3
is "$rc $(dump "$S")" "78 $held" 'a directory without config is a config error'
clean "$S" 'after all that the store is clean'

# --- a night that ended between publishing and exporting ------------------------------------------------------------------------------
S=$D/late
night --quiet --snapshot $FIXTURES/day-1/input.csv --commit $SHA1
before=$(exported "$S")
sleep 0.02
"$B/bin/ki-normalize" --quiet --commit $SHA2 $FIXTURES/day-2/input.csv | "$B/bin/ki-store" --store "$S" --quiet put
is "$? $(exported "$S")" "0 $before" 'when a night ends after publishing, the dump is that of the night before'
night --snapshot $FIXTURES/day-1/input.csv --commit $SHA1
is "$rc $(sed 's/.*nothing new.*/nothing new/' "$D/out") $([ "$(exported "$S")" != "$before" ] && echo changed)" '0 nothing new changed' 'the next one brings it up to date, though nothing is new'
changed=$(stat -c %Y.%Z "$S/data.mdb" "$S/export/latest.json")
night --snapshot $FIXTURES/day-1/input.csv --commit $SHA1
is "$(stat -c %Y.%Z "$S/data.mdb" "$S/export/latest.json")" "$changed" 'and the night after that touches neither catalog nor dump'
before=$(exported "$S")
touch -d '2099-01-01' "$S/export/latest.json" # made before the clock was set back
row 1024 0.7 '2026-03-01 00:00:00' >"$D/one.row"
{ header; cat "$D/one.row"; } >"$D/one.csv"
put "$S" "$D/one.csv"
night --snapshot $FIXTURES/day-1/input.csv --commit $SHA1
is "$rc $([ "$(exported "$S")" != "$before" ] && echo changed)" '0 changed' 'so it is when the clock was set back in between'
KI_NOW=1999-01-01T00:00:00Z night --quiet --snapshot "$D/one.csv" --commit $SHA3
is "$rc $(cat "$D/out" "$D/err") $("$KI" log --store "$S" | wc -l | tr -d ' ')" '0  4' 'a night whose clock is years behind publishes as any other'
clean "$S" 'and the store is clean'

# --- a year of nights (S05) -------------------------------------------------------------------------------------------------------------
nights=${LONG:+365}
nights=${nights:-10}
S=$D/s05
table 2000 >"$D/year.csv"
night --quiet --snapshot "$D/year.csv" --commit $SHA1
first=$(stat -c %s "$S/data.mdb")
bad=0
for n in $(seq "$nights"); do
	night --quiet --snapshot "$D/year.csv" --commit $SHA1
	[ "$rc $(cat "$D/out" "$D/err")" = '0 ' ] || bad=$((bad + 1))
done
last=$(stat -c %s "$S/data.mdb")
[ $((last - first)) -le 8192 ] && [ $bad -eq 0 ]
ok $? "S05: $nights nights on unchanged bytes leave the catalog within two pages ($first, $last bytes)"
base=$last
for n in $(seq "$nights"); do
	row 1024 "0.$((1000 + n))" "2026-$(printf '%02d-%02d' $((1 + n / 28)) $((1 + n % 28))) 00:00:00" >>"$D/year.csv"
	night --quiet --snapshot "$D/year.csv" --commit "$(printf '%040d' "$n")"
	[ "$rc" -eq 0 ] || bad=$((bad + 1))
done
grown=$(($(stat -c %s "$S/data.mdb") - base))
is "$bad $(runs "$S")" "0 $((2000 + nights))" "S05: $nights more with one new row each add one run each"
[ $grown -le $((nights * 8192 + 524288)) ] # half a megabyte of room to work in, once
ok $? "S05: and the catalog grows by a few kilobytes a night, not by the table ($grown bytes in all, $first for the table)"
clean "$S" 'S05: the store is clean'

# --- a dump that cannot be written --------------------------------------------------------------------------------------------------------
S=$D/nodump
: >"$D/plain"
night --quiet --snapshot $FIXTURES/example/input.csv --commit $SHA1 --out "$D/plain/dumps"
is "$rc $(lines "$D/err") $(jq -c '[.exitCode, .totals.newRuns]' "$S/report.json")" '66 1 [66,22]' 'the report tells of a night whose dump could not be written'
night --quiet --snapshot $FIXTURES/example/input.csv --commit $SHA1
is "$rc $(jq -c '[.exitCode, .totals.newRuns, .export != null]' "$S/report.json")" '0 [0,0,true]' 'the next night writes it'

# --- cron (K03) -------------------------------------------------------------------------------------------------------------------------
S=$D/shell
KI_NOW=2026-01-02T03:04:05Z night --quiet --snapshot "$TOP/$FIXTURES/example/input.csv" --commit $SHA1
wanted=$(exported "$S")
modes() {
	(cd "$1" && find . ! -name 'lock.mdb' -exec stat -c '%a %n' {} + | sort -k2)
}
modes "$S" >"$D/a"
for mask in 077 000; do
	(
		cd / && umask $mask
		env -i KI_NOW=2026-01-02T03:04:05Z "$KI" nightly --quiet --store "$D/cron.$mask" --config "$TOP/config" --snapshot "$TOP/$FIXTURES/example/input.csv" \
			--commit $SHA1 >"$D/out" 2>"$D/err" <&-
	)
	is "$? $(cat "$D/out" "$D/err") $(exported "$D/cron.$mask")" "0  $wanted" "K03: empty environment, cwd /, closed standard input, umask $mask: the same dump"
	modes "$D/cron.$mask" >"$D/b"
	same "$D/a" "$D/b" 'K03: and the same modes of files'
done
(cd "$D" && "$KI" nightly --quiet --snapshot "$TOP/$FIXTURES/example/input.csv" --commit $SHA1 && [ -f var/store/data.mdb ])
ok $? 'without --store the store is var/store'
is "$(awk '{ print $1 }' "$D/a" | sort | uniq -c | awk '{ print $2 }' | tr '\n' ' ')" '444 644 755 ' 'K03: modes are 444, 644 and 755'

# --- live fetches ---------------------------------------------------------------------------------------------------------------------------
if [ -x "$B/tests/https_server" ] && have openssl && tests/tls/make_certs "$D/tls" 2>/dev/null; then
	: >"$D/routes"
	"$B/tests/https_server" --tls "$D/tls/cert.pem" "$D/tls/key.pem" --log "$D/log" --routes "$D/routes" >"$D/port" 2>"$D/server.err" &
	TO_KILL="$TO_KILL $!"
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		[ -s "$D/port" ] && break
		sleep 0.1
	done
	PORT=$(cat "$D/port")
	cp -r config "$D/config"
	sed -e "s|^  \"version\": 1,|  \"version\": 1,\n  \"testing\": {\"hostMap\": {\"api.github.com\": \"127.0.0.1:$PORT\", \"raw.githubusercontent.com\": \"127.0.0.1:$PORT\"}, \"caFile\": \"../tls/ca.pem\"},|" \
		-e 's/"delayMilliseconds": 1000/"delayMilliseconds": 0/' -e 's/"waitMaxSeconds": 90/"waitMaxSeconds": 1/' -e 's/"backoffSeconds": 2/"backoffSeconds": 0/' \
		config/sources.json >"$D/config/sources.json"
	MAIN=benchmark/data/all_benchmark_data.csv
	LIST="api.github.com /repos/linkedin/Liger-Kernel/commits?path=$MAIN&per_page=1"
	upstream() { # upstream SHA FILE - the newest commit of the main file, and what it holds
		printf '[{"sha":"%s"}]' "$1" >"$D/list.json"
		printf '%s\n' "$LIST file $D/list.json" "raw.githubusercontent.com /linkedin/Liger-Kernel/$1/$MAIN file $2" >"$D/routes"
	}
	live() { # live OPTION... - a night with a network
		night --config "$D/config" --channel committed "$@"
	}
	S=$D/live
	table 200 >"$D/200.csv"
	upstream $SHA1 "$D/200.csv"
	live --quiet
	is "$rc $(cat "$D/out" "$D/err") $(runs "$S") $(jq -c '[.live, .totals.newRuns]' "$S/report.json")" '0  200 [true,200]' 'K04: a night with new rows, quiet, says nothing'
	rm -f "$D/log"
	live --quiet
	is "$rc $(cat "$D/out" "$D/err") $(grep -c '^GET' "$D/log")" '0  1' 'K04: nor does one without; it costs one request'
	live
	is "$rc $(cat "$D/out" "$D/err")" '0 ki nightly: nothing new' 'without --quiet it says that nothing is new'
	is "$(jq -r '.publications[0].provenance.finalUrl' "$S/report.json" 2>/dev/null) $("$KI" log --store "$S" --json | jq -r .provenance.finalUrl)" \
		"null https://raw.githubusercontent.com/linkedin/Liger-Kernel/$SHA1/$MAIN" 'the log knows where the file came from'

	# gates
	held=$(dump "$S")
	before=$(exported "$S")
	gate() { # gate FILE REASON SENTENCE - refused alive, published as a replay that says so
		cp -r "$S" "$D/gate"
		upstream $SHA2 "$1"
		live --quiet
		is "$rc $(dump "$S") $(exported "$S") $("$KI" log --store "$S" | wc -l | tr -d ' ') $(lines "$D/err")" "65 $held $before 1 1" "$3: a live fetch is refused, the store as before, with one line"
		has "$D/err" "$2" 'which gives the reason'
		is "$(jq -c '[.exitCode, (.publications[0].refused | length > 0), .totals.newRuns]' "$S/report.json")" '[65,true,0]' 'so does the report'
		clean "$S" 'and the store is clean'
		live --quiet
		is "$rc $(dump "$S")" "65 $held" 'it is refused again the next night'
		night --json --snapshot "$1" --commit $SHA2
		case "$rc" in 0 | 1) ;; *) rc="exit $rc" ;; esac
		is "$rc $(jq -r '.publications[0].gatesCrossed[0]' "$D/out" | grep -c "$2") $("$KI" log --store "$S" | wc -l | tr -d ' ')" "$4 1 2" 'a replay of the same file is published, and reports it'
		clean "$S" 'and clean'
		live --quiet
		is "$rc $(cat "$D/err")" '0 ' 'after which the live night is content'
		rm -rf "$S"
		mv "$D/gate" "$S"
	}
	table 139 >"$D/139.csv"
	gate "$D/139.csv" '139 rows where the publication before had 200' 'a file that lost more than 30 % of its rows' 0
	{ table 200; for n in 1 2 3 4 5; do row 1024 nan "2026-01-0$n 00:00:00"; done; } >"$D/rejected.csv"
	gate "$D/rejected.csv" '5 of 205 rows rejected' 'more than 2 % malformed rows' 1
	{ table 200; for n in $(seq 70); do row 1024 0.1 '2026-01-01 00:00:00' | sed "s/^rms_norm/kernel_$n/"; done; } >"$D/skipped.csv"
	gate "$D/skipped.csv" '70 of 270 rows skipped' 'more than a quarter unknown rows' 0
	table 200 | sed 's/\r$//; 1s/$/,extra/; 2,$s/$/,x/' >"$D/drift.csv"
	gate "$D/drift.csv" 'the header has changed' 'a new column' 0
	table 140 >"$D/140.csv"
	upstream $SHA2 "$D/140.csv"
	live --quiet
	is "$rc $("$KI" log --store "$S" | wc -l | tr -d ' ')" '0 2' 'exactly 30 % fewer rows pass'
	# A refused file among good ones: the good ones are published.
	printf '{"about": "x", "rejectedShareMax": {"value": 0, "reason": "x"}, "skippedShareMax": {"value": 1, "reason": "x"}, "shrinkShareMax": {"value": 1, "reason": "x"}, "driftRefused": {"value": false, "reason": "x"}}' >"$D/config/gates.json"
	upstream $SHA3 "$D/rejected.csv"
	{ echo "api.github.com /repos/linkedin/Liger-Kernel/commits?path=benchmark/data/all_benchmark_data_cutile.csv&per_page=1 file $D/list.json"
		echo "raw.githubusercontent.com /linkedin/Liger-Kernel/$SHA3/benchmark/data/all_benchmark_data_cutile.csv file $D/139.csv"; } >>"$D/routes"
	live --channel cutile --quiet
	is "$rc $("$KI" log --store "$S" --limit 1 --json | jq -r .channel) $(jq -c '[.publications[].channel]' "$S/report.json")" '65 cutile ["committed","cutile"]' \
		'a file that a gate refuses does not keep the others out'
	clean "$S" 'and the store is clean'
	echo '{' >"$D/config/gates.json"
	live --quiet
	is "$rc $(lines "$D/err")" '78 1' 'gates that cannot be read are a config error, told in one line'
	cp config/gates.json "$D/config/gates.json"

	# quota, outages, equal bytes under other names (H09, H10)
	printf 'HTTP/1.1 403 Forbidden\r\nX-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 4102444800\r\nContent-Length: 0\r\nConnection: close\r\n\r\n' >"$D/quota.http"
	held=$(dump "$S")
	for reply in "replay $D/quota.http" "replay $CASES/h09_403_primary.http" "replay $CASES/h09_403_secondary.http" "replay $CASES/h09_429_seconds.http" 'status 503'; do
		[ -e "${reply#replay }" ] || [ "$reply" = 'status 503' ] || {
			skip "H09: $reply" 'no ../shared here'
			continue
		}
		echo "* * $reply" >"$D/routes"
		live --quiet
		[ "$(lines "$D/err")" -le 3 ]
		is "$? $rc $(dump "$S") $(jq .exitCode "$S/report.json")" "0 75 $held 75" "H09, K04: ${reply##*/}: try later, in a line or few, the catalog unchanged"
	done
	if [ -e "$CASES/h09_403_plain.http" ]; then
		echo "* * replay $CASES/h09_403_plain.http" >"$D/routes"
		live --quiet
		is "$rc $(dump "$S")" "77 $held" 'H09: a plain 403 is not permitted'
	fi
	S=$D/h10
	upstream $SHA1 "$D/200.csv"
	live --quiet
	printf '%s\n' "$LIST weak $D/list.json" "raw.githubusercontent.com /linkedin/Liger-Kernel/$SHA1/$MAIN weak $D/200.csv" >"$D/routes"
	live
	is "$rc $(cat "$D/out") $("$KI" log --store "$S" | wc -l | tr -d ' ')" '0 ki nightly: nothing new 1' 'H10: equal bytes under a weak ETag are no new publication'
	KI_NOW=2099-01-01T00:00:00Z live --quiet
	KI_NOW=2099-01-02T00:00:00Z "$KI" status --store "$S" --max-age 48 >"$D/out" 2>"$D/err"
	is "$? $rc $(sed -n 's/^upstream *//p' "$D/out")" '0 0 last seen 2099-01-01T00:00:00.000Z' 'a store is not stale while nights find nothing new upstream'
	KI_NOW=2099-01-04T00:00:00Z "$KI" status --store "$S" --max-age 48 >"$D/out" 2>"$D/err"
	is "$?" 75 'it is once they have ceased'
	upstream $SHA2 "$D/200.csv"
	live
	is "$rc $(jq -c '.totals' "$S/report.json") $(find "$S/snapshots" -type f | grep -cE '/[0-9a-f]{64}$')" '0 {"carried":200,"conflicts":0,"newRuns":0} 1' \
		'the same bytes at a new commit are a publication without a new run, and one snapshot'

	# damage (K04)
	printf 'not,a,table\r\n' >"$D/damaged.csv"
	upstream $SHA3 "$D/damaged.csv"
	held=$(dump "$S")
	live --quiet
	is "$rc $(lines "$D/out") $(dump "$S")" "65 0 $held" 'K04: a damaged table is refused'
	[ "$(lines "$D/err")" -ge 1 ] && [ "$(lines "$D/err")" -le 3 ]
	ok $? 'K04: in a line or few'
	cp -r "$S" "$D/cut"
	truncate -s 8192 "$D/cut/data.mdb"
	ki nightly --quiet --store "$D/cut" --config "$D/config" --channel committed
	is "$rc $(lines "$D/err")" '80 1' 'K04: a damaged store is told in one line'

	# one run at a time (K01)
	S=$D/k01
	{ printf 'HTTP/1.1 200 OK\r\nContent-Length: %s\r\nConnection: close\r\n\r\n' "$(wc -c <"$D/200.csv" | tr -d ' ')"; cat "$D/200.csv"; } >"$D/slow.http"
	upstream $SHA1 "$D/200.csv"
	echo "$LIST file $D/list.json
raw.githubusercontent.com /linkedin/Liger-Kernel/$SHA1/$MAIN drip 100 $D/slow.http" >"$D/routes"
	"$KI" nightly --quiet --store "$S" --config "$D/config" --channel committed >"$D/first.out" 2>&1 </dev/null &
	first=$!
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		[ -e "$S/nightly.lock" ] && break
		sleep 0.1
	done
	sleep 0.3
	live --quiet
	is "$rc $(lines "$D/err") $(cat "$D/out")" '75 1 ' 'K01: while one night is under way a second ends at once, with one line'
	kill -9 $first
	wait $first 2>/dev/null
	sleep 0.2
	is "$(pgrep -f "ki-ingest --store $S " | wc -l | tr -d ' ')" 0 'K01: kill -9 of a night ends its stages too'
	upstream $SHA1 "$D/200.csv"
	live --quiet
	is "$rc $(cat "$D/out" "$D/err") $(runs "$S")" '0  200' 'K01: and the next night runs, without help'
	clean "$S" 'K01: to a clean store'
else
	skip 'live fetches, gates, quota, locks' 'no test server or no openssl here'
fi

# --- upstream's history ---------------------------------------------------------------------------------------------------------------------
if [ ! -d "$SHARED/golden" ]; then
	skip 'replaying the history of the main file gives the published runs' 'no ../shared here'
	plan
fi
U=$SHARED/upstream
G=$SHARED/golden
history() {
	find "$U/committed" -name '*.csv' | grep -v _cut | sort
}
commit_of() { # commit_of FILE - 12 digits, from its name
	basename "$1" .csv | sed 's/.*-//'
}
S=$D/history
cut -f2 "$G/committed-history-runs.tsv" | sort >"$D/prior"
: >"$D/found"
for file in $(history); do
	night --quiet --snapshot "$file" --commit "$(commit_of "$file")"
	[ "$rc $(cat "$D/out" "$D/err")" = '0 ' ] || echo "exit $rc" >>"$D/found"
	# What the night brought: all rows, times, memory values; runs by prior rules and GPUs; how many of those the catalog now holds.
	total=$("$KI" list --store "$S" --format tsv --columns digest | sort | comm -12 - "$D/prior" | wc -l | tr -d ' ')
	jq -r --arg total "$total" '.publications[0] | [.commit, .report.rows, .report.speed, .report.memory, .report.prior, $total,
		(.report.new.gpu | add // 0), (.report.new.rule | add // 0), .report.rejectedTotal + .report.skippedTotal, .newRuns] | @tsv' "$S/report.json" >>"$D/found"
done
jq -r '.[] | [.commit[:12], .rows, .speedRows, .skipped.memoryRows, .runs, .totalRuns, (.skipped.unknownGpu | add // 0), (.skipped.unknownConfig | add // 0),
	(.skipped.uncuratedKernels | add // 0)] | @tsv' "$G/committed-history.json" >"$D/a"
cut -f1-9 "$D/found" >"$D/b"
is "$(lines "$D/found")" 35 'the 35 revisions of the main file are 35 nights'
same "$D/a" "$D/b" 'each with the counts of committed-history.json, new GPUs and rules set apart'
"$KI" list --store "$S" --format tsv --columns external_id,digest,comparison_key | sort >"$D/b"
sort "$G/committed-history-all.tsv" >"$D/a"
is "$(lines "$D/b")" 1961 'in the end there are 1,961 runs'
same "$D/a" "$D/b" 'which are those of committed-history-all.tsv, digest and comparison key'
cut -f1,2 "$D/b" >"$D/a"
is "$(sort "$G/committed-history-runs.tsv" | comm -12 - "$D/a" | wc -l | tr -d ' ')" 1773 'among them the 1,773 of committed-history-runs.tsv'
is "$(awk -F'\t' '{ n += $10 } END { print n }' "$D/found")" "$(runs "$S")" 'the new runs of all nights add up to the runs there are'
clean "$S" 'the store is clean'
before=$(exported "$S") held=$(runs "$S")
bad=0
for file in $(history | head -40); do
	[ -n "$LONG" ] || case $file in *-0?T* | *-1?T*) continue ;; esac
	night --quiet --snapshot "$file" --commit "$(commit_of "$file")"
	[ "$rc $(cat "$D/out" "$D/err")" = '0 ' ] || bad=$((bad + 1))
done
# shellcheck disable=SC2046
"$B/bin/ki-normalize" --quiet $(history) | "$B/bin/ki-store" --store "$S" put --json >"$D/out" 2>"$D/err"
is "$bad $? $(jq .newRuns "$D/out" | sort -u | tr '\n' ' ')$(runs "$S")" "0 0 0 $held" 'replaying them inserts nothing'
clean "$S" 'and the store is clean'

S=$D/all
night --quiet --replay "$U"
is "$rc $(cat "$D/out" "$D/err") $("$KI" log --store "$S" | wc -l | tr -d ' ')" '0  57' 'all of upstream is 57 publications'
"$KI" list --store "$S" --metric all --format tsv --columns external_id,digest,comparison_key | sort >"$D/b"
sort -u "$G/committed-history-all.tsv" "$G"/gh-pages/*.tsv "$G"/*_cut*.tsv >"$D/a"
comm -12 "$D/a" "$D/b" >"$D/c"
same "$D/a" "$D/c" 'every time of committed, cutile, cutedsl and gh-pages is there, digest for digest'
"$KI" list --store "$S" --format tsv --columns external_id,digest,comparison_key | sort >"$D/c"
same "$D/a" "$D/c" 'and no other'
sort -u "$G"/memory/*.tsv >"$D/a"
comm -12 "$D/a" "$D/b" >"$D/c"
same "$D/a" "$D/c" 'every memory value of the golden lists is there too'
before=$(exported "$S") held=$(runs "$S")
night --replay "$U"
is "$rc $(cat "$D/out") $(exported "$S")" "0 ki nightly: nothing new $before" 'replaying it all is nothing new'
clean "$S" 'and the store is clean'

# The other way round: newest first, drops before the files that are rewritten in place.
backwards() {
	tac "$U/gh-pages/commits.txt" | while read -r entry; do
		[ -e "$U/gh-pages/$entry.csv" ] && "$B/bin/ki-normalize" --quiet --channel gh-pages --entry "$entry" "$U/gh-pages/$entry.csv"
	done
	for file in $(find "$U/committed" -name '*.csv' | sort -r); do
		case $file in *_cutile-*) channel=cutile ;; *_cutedsl-*) channel=cutedsl ;; *) channel=committed ;; esac
		"$B/bin/ki-normalize" --quiet --channel $channel --commit "$(commit_of "$file")" "$file"
	done
}
backwards | "$B/bin/ki-store" --store "$D/backwards" put --json >"$D/out" 2>"$D/err"
is "$? $(lines "$D/out") $(runs "$D/backwards")" "0 57 $held" 'in reverse order the files give as many runs'
for store in all backwards; do
	"$KI" list --store "$D/$store" --metric all --sort digest --format tsv --columns digest,external_id,comparison_key,rank,cohort_size,tied,kernel_rank,unranked,liger_version,upstream_commit,caveats >"$D/$store.tsv"
done
same "$D/all.tsv" "$D/backwards.tsv" 'with the same ranks, supersessions and labels'
is "$(dump "$D/backwards")" "$(dump "$S")" 'and the same dump, byte for byte'
clean "$D/backwards" 'and clean'
plan
