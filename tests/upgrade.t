#!/bin/sh
# A store that a program of schema 1 made: read as it is, upgraded by the first writer or by `ki upgrade`, whenever it is killed.
cd "$(dirname "$0")/.." && . tests/tap.sh

old() { # old STORE - a fresh copy of the fixture
	rm -rf "$1"
	mkdir "$1"
	zstd -qdc fixtures/store/schema-1.mdb.zst >"$1/data.mdb"
}
dump() { # dump STORE
	"$KI" export --store "$1" --format jsonl | sha256sum
}
old "$D/s"
held=$(dump "$D/s")
is "$("$KI" status --store "$D/s" --json | jq .schema)" 1 'a store of schema 1 is read as it is'
ki check --store "$D/s"
is "$rc $(grep -c 'schema 1: nothing proves' "$D/out")" '0 1' 'a check says that nothing proves its labels, publications and entries'
ki upgrade --store "$D/s"
is "$rc $(dump "$D/s")" "0 $held" 'ki upgrade changes nothing of what is exported'
has "$D/err" 'upgraded from schema 1 to 2' 'and says what it did'
ki upgrade --store "$D/s"
is "$rc $(grep -c upgraded "$D/err")" '0 0' 'a second time there is nothing to do'
ki check --store "$D/s" --json
is "$rc $(jq -c '[.runs, .problems, .unsealed]' "$D/out")" '0 [13,0,false]' 'the upgraded store is clean'
is "$("$KI" flags --store "$D/s" --code MANUAL | sed -n '2s/^ *//p')" 'the host was throttling (2026-11-30)' 'its entries are there'
is "$("$KI" list --store "$D/s" --format tsv --columns evidence | sort | uniq -c | tr -s ' \n' ' ')" ' 9 reported 4 verified ' 'so are its reruns'

old "$D/n"
publish "$D/n" fixtures/csv/example/input.csv
is "$rc $("$KI" status --store "$D/n" --json | jq .schema) $("$KI" check --store "$D/n" | cut -c1-5)" '0 2 clean' 'the first night upgrades too'
ki upgrade --store "$D/none"
is "$rc" 66 'there is nothing to upgrade where no store is'
[ ! -e "$D/none" ]
ok $? 'and none is made'

bad=
for delay in 0.001 0.002 0.003 0.004 0.005 0.006 0.007 0.008 0.009 0.010 0.012 0.015; do
	old "$D/k"
	"$B/bin/ki-store" --store "$D/k" upgrade >"$D/out" 2>"$D/err" &
	sleep $delay
	kill -9 $! 2>/dev/null
	wait $! 2>/dev/null
	[ "$(dump "$D/k")" = "$held" ] || bad="$bad $delay"
	"$KI" upgrade --store "$D/k" >"$D/out" 2>"$D/err" && "$KI" check --store "$D/k" --quiet >"$D/out" 2>"$D/err" || bad="$bad $delay"
	[ "$(dump "$D/k")" = "$held" ] || bad="$bad $delay"
done
is "$bad" '' 'an upgrade that is killed leaves a store that reads the same, and the next one completes it'
plan
