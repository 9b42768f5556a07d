#!/bin/sh
# Jobs planned from the store, and evidence brought back in. The evidence is a real batch of four jobs, run on an NVIDIA H200 from
# the rows of fixtures/verify/rows.csv; no GPU is needed to import it and to recompute its verdicts.
cd "$(dirname "$0")/.." && . tests/tap.sh

F=fixtures/verify
S=$D/store
fixture_config
ki nightly --store "$S" --snapshot $F/rows.csv --commit 2222222222222222222222222222222222222222
is "$rc" 0 'four rows are published'
of() { # of KERNEL - the run of a row
	"$KI" list --store "$S" --kernel "$1" --format tsv --columns digest,provider | awk '$2 != "kernelindex" { print $1 }'
}

# --- planning ---------------------------------------------------------------------------------------------------------------------
ki verify plan --store "$S" "$(of rms_norm)"
is "$rc $(lines "$D/out")" '0 1' 'a run gives one job line'
is "$(jq -c '[.type, .policy, .runner, .quantity, .kernel, .pass, .subject.externalId, .reported.median_ns, .reported.p20_ns, .reported.budget_ms, .gpu.product, .gpu.peak.GBps]' "$D/out")" \
	'["job","verify-v1","native","latency","rms_norm","forward","rms_norm/forward/liger/nvidia-h200/hidden16384-rows2048-bf16/2026-01-02-03-04-05",41200,40900,500,"NVIDIA H200",4800]' \
	'which holds what a GPU host must know'
is "$(jq -r '.operation | tojson | fromjson | .kind' "$D/out") $(jq -r .workload.spec.operationSpecDigest "$D/out")" \
	"OperationSpec $(jq -cj .operation "$D/out" | "$B/bin/ki-normalize" --digest)" 'its operation has the digest that its workload cites'
ki verify plan --store "$S" --gpu nvidia-h200
is "$(lines "$D/out")" 3 'a filter gives a job for each run that fits'
ki verify plan --store "$S" --flagged
is "$(jq -r .kernel "$D/out" | sort | tr '\n' ' ')" 'kl_div rope ' 'so do flags: one row is impossible, one looks like launch cost'
ki verify plan --store "$S" nosuchrun
is "$rc" 66 'a name that is no run is not found'

# --- importing --------------------------------------------------------------------------------------------------------------------
held=$("$KI" export --store "$S" --format jsonl | sha256sum)
ki verify import $F/evidence --store "$S"
is "$rc $(grep -c 'refused: signed by a key that is not approved' "$D/err")" '65 4' 'evidence signed by nobody approved is refused, line by line'
is "$("$KI" export --store "$S" --format jsonl | sha256sum)" "$held" 'and nothing of it enters the store'
ki verify import "$D" --store "$S" --config "$CONFIG"
is "$rc" 66 'a directory without evidence is not found'
mkdir "$D/forged"
for file in $F/evidence/evidence-*.jsonl; do
	# one letter of the first payload changed
	sed '1s/"payload":"\(.\{200\}\)./"payload":"\1A/' "$file" >"$D/forged/$(basename "$file")"
done
ki verify import "$D/forged" --store "$S" --config "$CONFIG"
is "$rc $(grep -c refused: "$D/err")" '65 1' 'a statement that was altered after signing is refused, the others are taken'
ki verify import $F/evidence --store "$S" --config "$CONFIG"
is "$rc $(sed -n 's/.*: 4 statements: //p' "$D/err")" '0 1 accepted, 3 known, 0 refused; 1 reruns published, 5 files kept' 'the true one completes the import'
ki verify import $F/evidence --store "$S" --config "$CONFIG"
is "$rc $(sed -n 's/.*: 4 statements: //p' "$D/err")" '0 0 accepted, 4 known, 0 refused; 0 reruns published, 0 files kept' 'importing again changes nothing'
ki check --store "$S"
is "$rc $(sed 's/.*publications, //; s/,.*//' "$D/out")" '0 7 kept files' 'the store is clean, evidence and samples included'

# --- what the record then says ----------------------------------------------------------------------------------------------------
verdict() { # verdict KERNEL
	"$KI" show --store "$S" "$(of "$1")" --json | jq -r '[.evidence, .reruns[0].verdict, .reruns[0].status] | join(" ")'
}
is "$(verdict rms_norm)" 'reported plausible passed' 'a time near that of the native kernel is plausible, and stays reported'
is "$(verdict rope)" 'reported far passed' 'one more than twice as long is far'
is "$(verdict kl_div)" 'reported too_fast passed' 'one below the hard floor of its GPU is too fast'
is "$(verdict softmax)" 'reported not_comparable passed' 'one of another GPU is not comparable'
"$KI" list --store "$S" --provider kernelindex --format tsv --columns external_id,median_ns,evidence,rank,cohort_size >"$D/out"
is "$(lines "$D/out") $(cut -f3 "$D/out" | sort -u) $(cut -f4,5 "$D/out" | sort -u | tr '\t' /)" '4 verified 1/1' \
	'the native runs are verified, each in a group of its own'
is "$(grep rms_norm "$D/out" | cut -f1,2)" "rms_norm/forward/kernelindex/nvidia-h200/hidden16384-rows2048-bf16/2026-11-30-21-35-34	37632" \
	'with the measured median and the time of the batch'
ki show --store "$S" "$(of rms_norm)"
has "$D/out" 'native runner, passed, device class, plausible by verify-v1' 'ki show prints runner, status, class, verdict and policy'
has "$D/out" '% of measured copy bandwidth' 'and the share of bandwidth that was reached'
is "$("$KI" list --store "$S" --provider liger --format tsv --columns rank | sort -u | tr '\n' ' ')" '1 ' 'ranks of published runs are as before'
rerun=$("$KI" list --store "$S" --provider kernelindex --kernel rope --format tsv --columns digest)
is "$("$KI" show --store "$S" "$rerun" --json | jq -r .reruns[0].subject)" "$(of rope)" 'a rerun names its subject'
is "$("$KI" show --store "$S" "$rerun" --json | jq -cj .manifest | "$B/bin/ki-normalize" --digest)" "$rerun" 'the body of a rerun has its digest'
samples=$("$KI" show --store "$S" "$rerun" --json | jq -r .manifest.spec.timing.rawSamples.digest)
is "$(zstd -dcq "$S/samples/${samples#sha256:}.json.zst" | sha256sum | cut -c1-64)" "${samples#sha256:}" 'its raw samples are kept under their digest'
ki show --store "$S" "$rerun"
has "$D/out" "  raw samples      $samples" 'ki show names them'
is "$(grep -c '^  *[0-9]* bytes, compressed with zstd$' "$D/out") $(grep -c "^  rerun of         $(of rope)\$" "$D/out") $(grep -c '^                   signing key ' "$D/out")" '1 1 1' \
	'with their size, the subject and who signed'
"$KI" export --store "$S" --format jsonl >"$D/a"
is "$(jq -rc 'select(.type == "run") | .evidence' "$D/a" | sort | uniq -c | tr -s ' \n' ' ')" ' 4 reported 4 verified ' 'dumps say the level'

sample=$(find "$S/samples" -type f | head -1)
chmod u+w "$sample" && printf x >>"$sample"
ki check --store "$S"
is "$rc $(grep -c '^check: samples .* \(is unreadable\|has other bytes\)' "$D/out")" '80 1' 'a damaged sample is found'

# --- replaying --------------------------------------------------------------------------------------------------------------------
"$KI" verify --replay $F/evidence/evidence-*.jsonl --config "$CONFIG" >"$D/out" 2>"$D/err"
is "$? $(grep -c . "$D/out")" '0 4' 'every verdict is recomputed from its evidence'
for word in plausible far too_fast not_comparable; do
	has "$D/out" "$word" "$word among them"
done
"$KI" verify --replay "$D/forged"/evidence-*.jsonl --config "$CONFIG" >"$D/out" 2>"$D/err"
is "$?" 65 'evidence that was altered does not replay'
plan
