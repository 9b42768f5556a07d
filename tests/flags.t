#!/bin/sh
# Twelve planted anomalies in eight made-up drops: each is flagged by its code at its row, and what is sound is left alone.
# shellcheck disable=SC2119,SC2120
cd "$(dirname "$0")/.." && . tests/tap.sh

HEADER=kernel_name,kernel_provider,kernel_operation_mode,metric_name,metric_unit,x_name,x_label,x_value,y_value_50,y_value_20,y_value_80,extra_benchmark_config_str,gpu_name,timestamp,liger_version
H100='NVIDIA H100 80GB HBM3'
M='"{""M"": 2048, ""dtype"": ""torch.bfloat16"", ""eps"": 1e-06}"'
SOFT='"{""M"": 2048, ""dtype"": ""torch.bfloat16""}"'
BT='"{""B"": 8, ""T"": 2048}"'
GRPO='"{""T"": 1024, ""bsz"": 4, ""seq_len"": 1024, ""hidden_size"": 4096, ""vocab_size"": 128256, ""importance_sampling_level"": ""token"", ""dtype"": ""torch.bfloat16""}"'

# row KERNEL PROVIDER MODE XNAME X MS CONFIG [SPREAD [GPU]] - one row of drop $drop; SPREAD: p20 and p80 lie this share around it
row() {
	awk -v ms="$6" -v s="${8:-0.004}" -v d="$drop" -v a="$1,$2,$3,speed,ms,$4,size,$5" -v z="$7" -v gpu="${9:-$H100}" 'BEGIN {
		ms *= 1 + 0.001 * ((d * 7) % 5 - 2) # each drop differs a little
		printf "%s,%.9g,%.9g,%.9g,%s,%s,2025-%02d-01 00:00:00,0.%d.0\r\n", a, ms, ms * (1 - s), ms * (1 + s), z, gpu, d, d
	}'
}
# value DROP BEFORE AFTER - a level that steps at drop 5
step() {
	if [ "$drop" -lt 5 ]; then echo "$1"; else echo "$2"; fi
}
at() { # at DROP SPECIAL USUAL
	if [ "$drop" -eq "$1" ]; then echo "$2"; else echo "$3"; fi
}

S=$D/store
for drop in 1 2 3 4 5 6 7 8; do
	{
		printf '%s\r\n' "$HEADER"
		# sound: two sizes that take 2.5 times their floor and grow with it
		row rms_norm liger forward H 16384 0.10 "$M"
		row rms_norm liger forward H 32768 0.20 "$M"
		row rms_norm liger backward H 16384 "$(step 0.20 0.23)" "$M"          # REGRESSION, 15 %
		row rms_norm liger full H 16384 "$(step 0.30 0.21)" "$M"              # IMPROVEMENT, 30 %
		row cross_entropy liger full V 131072 "$(at 8 2.4 6.0)" "$BT"         # IMPOSSIBLE in drop 8: 17 GB in 2.4 ms
		row softmax torch forward N 1024 0.060 "$SOFT"                        # LAUNCH_SUSPECT: flat
		row softmax torch forward N 2048 0.061 "$SOFT"
		row layer_norm torch forward N 1024 0.045 "$M"                        # LAUNCH_SUSPECT: many times its floor
		row layer_norm liger backward N 16384 "$(at 6 0.9 0.3)" "$M"          # NON_MONOTONE in drop 6
		row layer_norm liger backward N 32768 0.6 "$M"
		row layer_norm liger full N 16384 0.4 "$M" "$(at 3 0.4 0.004)"        # WIDE_SPREAD in drop 3
		row kl_div torch full V 65536 200 "$BT" "$(at 7 0 0.004)"             # SINGLE_SAMPLE in drop 7
		row kl_div liger forward V 65536 3.0 "$BT"
		row kl_div torch forward V 65536 3.1 "$BT"
		row kl_div huggingface forward V 65536 "$(at 8 2.7 9.0)" "$BT"        # RECORD_CANDIDATE in drop 8
	} | sed 's/rms_norm\(,[^,]*,[^,]*,speed,ms\),H,/rms_norm\1,H,/; s/\(layer_norm\|softmax\)\(,[^,]*,[^,]*,speed,ms\),N,/\1\2,N,/' >"$D/drop$drop.csv"
	ki nightly --store "$S" --snapshot "$D/drop$drop.csv" --channel gh-pages --entry "a00000$drop"
	[ $rc -eq 0 ] || sed 's/^/# /' "$D/out" "$D/err"
done
is "$("$KI" list --store "$S" --format tsv --columns digest | wc -l | tr -d ' ')" 120 'eight drops of fifteen rows are published'

# the same release measured twice, 40 % apart
drop=9
{
	printf '%s\r\n' "$HEADER"
	row tvd liger forward V 65536 4.0 "$BT"
} >"$D/once.csv"
sed 's/2025-09-01/2025-09-02/; s/,4[.0-9]*,3[.0-9]*,4[.0-9]*,/,5.6,5.58,5.62,/' "$D/once.csv" >"$D/again.csv"
ki nightly --store "$S" --snapshot "$D/once.csv" --channel gh-pages --entry b000001
ki nightly --store "$S" --snapshot "$D/again.csv" --channel gh-pages --entry b000002
{
	printf '%s\r\n' "$HEADER"
	row fused_linear_grpo_loss_token liger_cutile full B 4 50 "$GRPO"
} >"$D/cutile.csv"
ki nightly --store "$S" --snapshot "$D/cutile.csv" --channel cutile --commit c00000000001

flagged() { # flagged CODE - external ids and words, one a line
	"$KI" flags --store "$S" --code "$1" --json 2>"$D/err" | jq -r '.externalId + " " + .words' | sort
}
flagged IMPOSSIBLE >"$D/out"
is "$(lines "$D/out") $(cut -d/ -f1,2,3,6 "$D/out" | cut -d' ' -f1)" '1 cross_entropy/full/liger/2025-08-01-00-00-00' \
	'a row under the hard floor of its GPU is IMPOSSIBLE, and only that'
flagged REGRESSION >"$D/out"
is "$(cut -d/ -f1,2,3,6 "$D/out")" 'rms_norm/backward/liger/2025-05-01-00-00-00 slower by 14.9 % from a000005 on' \
	'a level that is 15 % slower from one drop on is a REGRESSION at that drop'
flagged IMPROVEMENT >"$D/out"
is "$(cut -d/ -f1,2,3,6 "$D/out")" 'rms_norm/full/liger/2025-05-01-00-00-00 faster by 30.1 % from a000005 on' 'and a faster one an IMPROVEMENT'
flagged LAUNCH_SUSPECT >"$D/out"
has "$D/out" 'softmax/forward/torch/nvidia-h100-80gb-hbm3/hidden1024-rows2048-bf16/2025-03-01-00-00-00 59.9 µs stays flat while the work grows 2.0 times' \
	'a time that stays flat while the work doubles is LAUNCH_SUSPECT'
has "$D/out" 'layer_norm/forward/torch/nvidia-h100-80gb-hbm3/hidden1024-rows2048-bf16/2025-03-01' 'so is one that is many times its floor'
is "$(grep -c rms_norm "$D/out")" 0 'times near their floor are not'
flagged NON_MONOTONE >"$D/out"
is "$(cut -d/ -f1,2,3,5,6 "$D/out" | cut -d' ' -f1)" 'layer_norm/backward/liger/hidden16384-rows2048-bf16/2025-06-01-00-00-00' \
	'a size that takes longer than twice the size does is NON_MONOTONE'
flagged WIDE_SPREAD >"$D/out"
is "$(cut -d/ -f1,2,3,6 "$D/out")" 'layer_norm/full/liger/2025-03-01-00-00-00 p80 is 2.33 times p20' 'p80 far above p20 is a WIDE_SPREAD'
flagged SINGLE_SAMPLE >"$D/out"
is "$(cut -d/ -f1,2,3,6 "$D/out")" 'kl_div/full/torch/2025-07-01-00-00-00 p20, median and p80 are equal: about 1 sample, not perfect precision' \
	'equal quantiles of a long call are a SINGLE_SAMPLE'
flagged RECORD_CANDIDATE >"$D/out"
is "$(grep -c '^kl_div/forward/huggingface/.*/2025-08-01-00-00-00 2.70 ms leads its group' "$D/out")" 1 'a new first that beats the old one is a RECORD_CANDIDATE'
flagged CONTRADICTED >"$D/out"
is "$(cut -d/ -f1,2,3,6 "$D/out")" 'tvd/forward/liger/2025-09-02-00-00-00 5.60 ms here, 4.00 ms in another publication of version 0.9.0, beyond both spreads' \
	'two publications of one release that disagree are CONTRADICTED'
flagged ALIAS >"$D/out"
is "$(cut -d/ -f1,3 "$D/out" | cut -d' ' -f1)" fused_linear_grpo_loss_token/liger_cutile 'a provider that runs the code of another is an ALIAS'

# by hand
run=$("$KI" list --store "$S" --kernel tvd --format tsv --columns digest | head -1)
ki flag --store "$S" "$run" --reason 'the host was throttling'
is "$rc" 0 'a person can flag a run'
is "$(flagged MANUAL | cut -d' ' -f2-5)" 'the host was throttling' 'a MANUAL flag carries its reason'
ki flag --store "$S" "$run"
is "$rc" 64 'a flag by hand wants a reason'
ki flag --store "$S" "$run" --clear
is "$rc $(flagged MANUAL | wc -l | tr -d ' ')" '0 0' 'it can be cleared'
reason=$(awk 'BEGIN { for (i = 0; i < 400; i++) printf "\303\251" }')
ki flag --store "$S" "$run" --reason "$reason"
is "$(flagged MANUAL | cut -d' ' -f2)" "$reason" 'a reason of 800 bytes is kept whole'
ki flag --store "$S" "$run" --reason "$(printf 'red \033[31m\nnext')"
is "$("$KI" flags --store "$S" --code MANUAL | sed -n '2s/^ *//p' | cut -d' ' -f1-2)" 'red \x1b[31m\x0anext' 'what a terminal would act on is shown'
ki flag --store "$S" "$run" --clear
ki check --store "$S"
is "$rc" 0 'clearing is an entry, and the store stays clean'

ki flags --store "$S" --code TOO_GOOD
is "$rc" 64 'an unknown code is a usage error'
has "$D/err" IMPOSSIBLE 'that lists the codes'
is "$("$KI" flags --store "$S" --kernel tvd | grep -c '^[A-Z]')" 1 'flags can be asked for one kernel'
"$KI" flags --store "$S" --json >"$D/a" && "$KI" flags --store "$S" --json >"$D/b"
same "$D/a" "$D/b" 'the same store gives the same flags'

# times that round to 0 ns
{
	printf '%s\r\n' "$HEADER"
	row tvd liger full V 65536 4.0 "$BT"
	row tvd torch full V 65536 0.0000001 "$BT" | sed 's/2025-09/2025-10/'
} >"$D/zero.csv"
ki nightly --store "$D/zero" --snapshot "$D/zero.csv" --channel gh-pages --entry d000001
ki flags --store "$D/zero" --json
is "$rc $(jq -r 'select(.code == "IMPOSSIBLE" or .code == "RECORD_CANDIDATE") | .code + " " + (.severity | tostring | split(".")[0])' "$D/out" | sort | tr '\n' ' ')" \
	'0 IMPOSSIBLE 3846239 RECORD_CANDIDATE 4004000 ' 'a time of 0 ns is held against its floor as one of 1 ns'

# shellcheck disable=SC2046
ki compare --store "$D/zero" $("$KI" list --store "$D/zero" --sort rank --format tsv --columns digest)
is "$rc $(tail -1 "$D/out")" '0   [2] against [1]: slower, beyond both spreads' 'and no ratio to it is made up'

# real history
if [ -d "$SHARED/upstream" ]; then
	ki nightly --store "$D/real" --replay "$SHARED/upstream"
	is "$("$KI" flags --store "$D/real" --code IMPOSSIBLE | wc -l | tr -d ' ')" 0 'no published row beats the speed of light'
	is "$("$KI" flags --store "$D/real" --code REGRESSION | grep -A1 'distill_jsd_loss/forward/torch' | grep -c 'slower by [34].* from 33924d2 on')" 4 \
		'the torch baseline of distill_jsd_loss became slower at all four sizes, from drop 33924d2 on'
else
	skip 'real history' 'no ../shared'
fi

# --- one record's ------------------------------------------------------------------------------------------------------------------
"$KI" flags --store "$S" --json | jq -r '"\(.run) \(.code): \(.words)"' | sort >"$D/a"
"$KI" list --store "$S" --format tsv --columns digest | while read -r run; do
	"$KI" show --store "$S" "$run" | sed -n '/^  doubts /,/^$/p' | sed -n "s/^  doubts  */                   /; s/^ \{19\}\([A-Z_]*: \)/$run \1/p"
done | sort >"$D/b"
same "$D/a" "$D/b" "ki show prints all flags of a record, and no others ($(lines "$D/a") flags)"
plan
