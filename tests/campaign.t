#!/bin/sh
# Campaigns: a list of jobs in batches that goes on where it stopped, split over shards and merged into one store. There is no GPU here: the
# measured process is test_verify_batch, which answers as an H200 would.
cd "$(dirname "$0")/.." && . tests/tap.sh

S=$D/store
KEY=$D/key.pem
CONFIG=$D/config
cp -r config "$CONFIG"
unset KI_KEY
export PLAY=well
cat >"$D/worker" <<EOF
#!/bin/sh
sleep "\${SLOW:-0}"
exec "$B/tests/test_verify_batch" "\$@"
EOF
chmod +x "$D/worker"
"$B/bin/ki-verify" keygen "$KEY" >"$D/out" 2>"$D/err"
sed -i "s|^]\$|$(cat "$D/out")\n]|" "$CONFIG/signers.json"

# six rows of one kernel that the stand-in knows, on the GPU that it claims to be
header >"$D/rows.csv"
for H in 1024 2048 4096 8192 16384 32768; do
	printf 'rms_norm,%s,%s,speed,ms,H,hidden size,%s,0.%04d2,0.%04d1,0.%04d3,"{""M"": 2048, ""dtype"": ""torch.bfloat16"", ""eps"": 1e-06}",NVIDIA H200,2026-01-02 03:04:05,0.5.10\r\n' \
		liger forward "$H" $((H / 8)) $((H / 8)) $((H / 8))
done >>"$D/rows.csv"
ki nightly --store "$S" --snapshot "$D/rows.csv" --commit 3333333333333333333333333333333333333333
is "$rc" 0 'six rows are published'
"$KI" verify plan --store "$S" --kernel rms_norm >"$D/planned.jsonl" 2>"$D/err"
jq -c '.id = .workload.spec.axes.hidden | .id |= tostring | .nonce = .id' "$D/planned.jsonl" >"$D/jobs.jsonl" # the same shards in every run of this test
is "$(lines "$D/jobs.jsonl")" 6 'which give six jobs'

campaign() {
	ki verify --campaign "$D/jobs.jsonl" --key "$KEY" --config "$CONFIG" --worker "$D/worker" "$@"
}
batches() {
	ls "$1" | grep -c '^evidence-'
}

# --- within a time, and on again ----------------------------------------------------------------------------------------------------
SLOW=0.6 campaign --out "$D/c" --chunk 1 --hours 0.0014 # five seconds; a batch takes three
is "$rc" 0 'a campaign that runs out of time has not failed'
has "$D/err" 'campaign: out of time with' 'it says that it is not through'
has "$D/err" 'the same command goes on' 'and how it goes on'
is "$(batches "$D/c") $(lines "$D/c/done")" '1 1' 'what was run before is there'
ki verify import "$D/c" --store "$S" --config "$CONFIG"
is "$rc" 0 'and can be imported while the campaign is not over'
touch "$D/c/evidence-0123.jsonl.tmp.999999" "$D/c/done.tmp.999999" "$D/c/samples/x.json.zst.tmp.999999"
campaign --out "$D/c" --chunk 2
is "$rc $(batches "$D/c") $(lines "$D/c/done")" '0 4 6' 'the same command does the rest, each job once'
is "$(find "$D/c" -name '*.tmp.*')" '' 'and clears away what a campaign that was killed left half written'
has "$D/err" 'campaign: 5 of 5 jobs' 'and counts only what was left'
campaign --out "$D/c" --chunk 2
is "$rc $(batches "$D/c")" '0 4' 'once more there is nothing to do'
truncate -s -3 "$D/c/done"
campaign --out "$D/c" --chunk 2
is "$rc $(batches "$D/c") $(lines "$D/c/done")" '0 5 6' 'a list of what is done that was cut off costs the job at its end, no more'
ki verify replay "$D"/c/evidence-*.jsonl --config "$CONFIG"
is "$rc" 0 'every verdict can be made again'

# --- shards -------------------------------------------------------------------------------------------------------------------------
for i in 1 2; do
	campaign --out "$D/shard$i" --shard $i/2
	is "$rc" 0 "shard $i of 2 is run"
done
is "$(cat "$D/shard1/done" "$D/shard2/done" | sort -u | wc -l | tr -d ' ')" 6 'the shards share no job and leave none out'
ki nightly --store "$D/merged" --snapshot "$D/rows.csv" --commit 3333333333333333333333333333333333333333
for i in 1 2; do
	ki verify import "$D/shard$i" --store "$D/merged" --config "$CONFIG"
	is "$rc" 0 "shard $i is imported"
done
is "$("$KI" list --store "$D/merged" --format tsv --columns provider | grep -c kernelindex)" 6 'both together are six reruns in one store'
ki check --store "$D/merged"
is "$rc" 0 'which is clean'
campaign --out "$D/x" --shard 3/2
is "$rc" 64 'a shard that does not exist is a usage error'
campaign --out "$D/x" --chunk 0
is "$rc" 64 'so is a batch of no jobs'

if script -qec true /dev/null </dev/null >/dev/null 2>&1; then
	script -qec "$KI verify --campaign $D/jobs.jsonl --key $KEY --config $CONFIG --worker $D/worker --out $D/seen --chunk 6" /dev/null </dev/null 2>/dev/null | tr '\r' '\n' >"$D/seen.out"
	is "$(grep -c 'block [0-9]* of 30' "$D/seen.out") $(grep -c 'block 30 of 30, about [0-9]* s left' "$D/seen.out")" '30 1' 'on a terminal a line says how far a batch is'
else
	skip 'on a terminal a line says how far a batch is' 'no pseudo terminal here'
fi
is "$(cat "$D/out" "$D/err" | grep -c 'block [0-9]* of')" 0 'and nowhere else'

# --- order --------------------------------------------------------------------------------------------------------------------------
"$KI" flag "$("$KI" list --store "$S" --kernel rms_norm --format tsv --columns digest,external_id | awk '/hidden8192/ && /liger/ { print $1 }')" --reason 'by hand' \
	--store "$S" >"$D/out" 2>"$D/err"
"$KI" verify plan --store "$S" --kernel rms_norm --by-doubt >"$D/ordered.jsonl" 2>"$D/err"
is "$(lines "$D/ordered.jsonl") $(head -1 "$D/ordered.jsonl" | grep -c hidden8192)" '6 1' 'by doubt, a flagged run comes first and none is lost'

plan
