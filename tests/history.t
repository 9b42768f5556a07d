#!/bin/sh
# What becomes of a run: publications that carried it, predecessor, successor, withdrawal, and changes of a group's first.
cd "$(dirname "$0")/.." && . tests/tap.sh

F=fixtures/csv
S=$D/store
ID=rms_norm/forward/liger/nvidia-a100-sxm4-80gb
publish "$S" $F/noise-before/input.csv 1111111111111111111111111111111111111111
publish "$S" $F/noise-after/input.csv 2222222222222222222222222222222222222222
old=$("$KI" list --store "$S" --format tsv --columns digest,median_ns | awk '$2 == 200000 { print $1 }')
new=$("$KI" list --store "$S" --format tsv --columns digest,median_ns | awk '$2 == 240000 { print $1 }')

ki history --store "$S" "$old" --json
is "$rc $(jq -c '[.state, .predecessor, .successor.run, .successor.value, (.publications | map(.identity))]' "$D/out")" \
	"0 [\"superseded\",null,\"$new\",240000,[\"1111111111111111111111111111111111111111\"]]" 'a run that was overwritten names its successor and who carried it'
ki history --store "$S" "$new" --json
is "$(jq -c '[.state, .predecessor.run, .successor]' "$D/out")" "[\"current\",\"$old\",null]" 'and the successor its predecessor'
ki history --store "$S" "$old"
has "$D/out" 'superseded' 'the text says so too'
ki show --store "$S" "$old"
is "$rc $(grep -c "superseded by *$new" "$D/out") $(grep -c 'none: SUPERSEDED' "$D/out")" '0 1 1' 'it stays readable, without a rank'
ki log --store "$S" --events --json
is "$(lines "$D/out") $(jq -c 'select(.new.value == 240000) | [.type, .cause.reason, .cause.channel, .cause.identity, .old.run, .new.run]' "$D/out")" \
	"3 [\"leader\",\"superseded\",\"committed\",\"2222222222222222222222222222222222222222\",\"$old\",\"$new\"]" \
	'each change of a first is an event with its cause, old and new'
ki list --store "$S" --withdrawn --format tsv
is "$rc $(lines "$D/out")" '0 0' 'a row that has a successor is not withdrawn'
head -3 $F/noise-after/input.csv >"$D/shorter.csv"
publish "$S" "$D/shorter.csv" 3333333333333333333333333333333333333333
ki list --store "$S" --withdrawn --format tsv --columns external_id,rank
is "$(cat "$D/out")" "$(printf '%s\t1' $ID/hidden4096-rows2048-bf16/2025-05-02-10-15-32)" 'a row that vanished without successor is withdrawn, and stays ranked'
ki history --store "$S" $ID/hidden4096-rows2048-bf16/2025-05-02-10-15-32 --json
is "$(jq -r .state "$D/out")" withdrawn 'its history says so'

# a faster provider takes the lead
{ header; sed -n 2p $F/noise-after/input.csv | sed 's/,liger,/,torch,/; s/,0.108,0.095,0.125,/,0.05,0.049,0.051,/; s/2025-05-02/2025-06-01/'; } >"$D/faster.csv"
ki nightly --store "$S" --snapshot "$D/faster.csv" --entry abc1234
ki log --store "$S" --events --json --limit 1
is "$(jq -c '[.cause.reason, .cause.channel, .cause.identity, .old.value, .new.value]' "$D/out")" '["beaten","gh-pages","abc1234",108000,50000]' \
	'a new first that is faster beats the old one'
ki history --store "$S" nothing
is "$rc" 66 'a name that is no run is not found'

if [ -d "$SHARED/upstream" ]; then
	ki nightly --store "$D/real" --replay "$SHARED/upstream"
	is "$("$KI" list --store "$D/real" --metric all --format tsv --columns unranked | grep -c SUPERSEDED)" 152 'upstream overwrote 152 rows of its files'
	is "$("$KI" list --store "$D/real" --metric all --withdrawn --format tsv | wc -l | tr -d ' ')" 372 'and took 372 back without a successor'
else
	skip 'upstream history' 'no ../shared'
fi
plan
