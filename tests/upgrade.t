#!/bin/sh
# A store that a program of schema 1 made: read as it is, upgraded by the first writer or by `ki upgrade`, whenever it is killed. A store
# of a schema that is yet to come is refused by name.
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

old "$D/d"
"$B/bin/ki-normalize" --quiet --commit 5555555555555555555555555555555555555555 fixtures/csv/example/input.csv >"$D/wire"
"$B/bin/ki-store" --store "$D/d" put --dry-run <"$D/wire" >"$D/out" 2>"$D/err"
rc=$?
zstd -qdc fixtures/store/schema-1.mdb.zst | cmp -s - "$D/d/data.mdb"
is "$? $rc $(grep -c 'would publish 22 new runs' "$D/err")" '0 0 1' 'a dry run upgrades nothing, and says what would be published'

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

# --- a store of a newer program: 78, not damaged, and not touched -----------------------------------------------------------------------
mkdir "$D/new"
zstd -qdc fixtures/store/schema-999.mdb.zst >"$D/new/data.mdb"
cp "$D/new/data.mdb" "$D/newer.mdb"
bad=
for verb in check list 'show 00000000' status flags 'log --events' 'export --format jsonl' "export --out $D/dumps" "backup $D/copy" upgrade 'flag x --reason y' \
	'verify plan' "verify import fixtures/verify/evidence" 'nightly --snapshot fixtures/verify/rows.csv --commit 111111111111'; do
	# shellcheck disable=SC2086
	ki $verb --store "$D/new"
	[ "$rc $(grep -c "schema version 999 is newer than this program's 2: upgrade kernelindex" "$D/err")" = '78 1' ] || bad="$bad; $verb: $rc"
done
is "$bad" '' 'every command refuses a store of a newer schema with exit 78 and says to upgrade the program'
cmp -s "$D/newer.mdb" "$D/new/data.mdb"
ok $? 'and leaves it as it is'
ki doctor --store "$D/new"
is "$(grep -c '^fail  store .*(78)' "$D/out")" 1 'ki doctor names the same code'
plan
