#!/bin/sh
# A record rerun with its own code, from the plan to the level that follows. There is no GPU here: the measured process is test_verify_batch,
# which answers as an H200 would and takes 20 us for every call; what is planned, found, judged, signed, imported and derived is the real thing.
cd "$(dirname "$0")/.." && . tests/tap.sh

S=$D/store
CONFIG=$D/config
cp -r config "$CONFIG"
unset KI_KEY
export PLAY=well
printf '#!/bin/sh\nexec "%s/tests/test_verify_batch" "$@"\n' "$B" >"$D/worker"
chmod +x "$D/worker"
for k in 1 2; do
	"$B/bin/ki-verify" keygen "$D/key$k" >>"$D/entries" 2>"$D/err"
done
sed -i "s|^]\$|$(paste -sd, "$D/entries")\n]|" "$CONFIG/signers.json"

header >"$D/rows.csv"
for row in '1024,0.0201,0.0199,0.0203' '2048,0.0501,0.0499,0.0503'; do
	printf 'rms_norm,liger,forward,speed,ms,H,hidden size,%s,"{""M"": 2048, ""dtype"": ""torch.bfloat16"", ""eps"": 1e-06}",NVIDIA H200,2026-01-02 03:04:05,0.5.10\r\n' "$row"
done >>"$D/rows.csv"
ki nightly --store "$S" --snapshot "$D/rows.csv" --entry 0701bab
is "$rc" 0 'two rows of a drop are published'

# --- the plan -----------------------------------------------------------------------------------------------------------------------
ki verify plan --store "$S" --kernel rms_norm --runner upstream
cp "$D/out" "$D/jobs.jsonl"
is "$(jq -c '[.runner, .source.commit, .source.version, .implementation.spec.callable.language]' "$D/jobs.jsonl" | sort -u)" \
	'["upstream","0701bab26619b088738d096b2737e785d02dbbbc","0.5.10","triton"]' 'a job says whose code its record ran'
ki verify plan --store "$S" --runner other
is "$rc" 64 'there are two runners'

# --- bundles for the two cases, from the one that comes with the source -------------------------------------------------------------
canonical() {
	"$B/bin/ki-normalize" --canonical | tr -d '\n'
}
bundles() { # DIR FILES-DIGEST
	mkdir -p "$1/bundles" "$1/cases"
	cp -r fixtures/verify/bundles/blobs "$1/"
	while read -r job; do
		workload=$(printf '%s' "$job" | jq -c .workload | "$B/bin/ki-normalize" --digest)
		H=$(printf '%s' "$job" | jq .workload.spec.axes.hidden)
		jq -c --arg w "$workload" --argjson H "$H" --arg f "$2" '.workload = $w | .code.files = $f | .timed[1].grid[0] = 2048 | .timed[0].bytes = 8192 |
			.buffers[0].bytes = 4096 * $H | .buffers[2].bytes = 4096 * $H | .buffers[1].bytes = 4 * $H | .buffers[3].bytes = 8192' \
			fixtures/verify/bundles/bundles/*.json | canonical >"$D/manifest"
		hex=$(sha256sum <"$D/manifest" | cut -c1-64)
		cp "$D/manifest" "$1/bundles/$hex.json"
		key=$(printf '%s' "$job" | jq -c --arg w "$workload" '{code: {commit: .source.commit}, kernel, pass, provider, workload: $w}' | canonical | sha256sum | cut -c1-64)
		echo "sha256:$hex" >"$1/cases/$key"
	done <"$D/jobs.jsonl"
}
bundles "$D/bundles" sha256:e3e5ff26541e331d3f7ad7b19e9ab9c06adef5a569483fe0f96ab3a0359e0552
bundles "$D/altered" sha256:0000000000000000000000000000000000000000000000000000000000000000
rerun() { # OUT KEY BUNDLES
	ki verify run "$D/jobs.jsonl" --out "$1" --key "$2" --bundles "$3" --config "$CONFIG" --worker "$D/worker" --quiet
}
of() { # H - evidence level and verdict of a row
	"$KI" list --store "$S" --kernel rms_norm --provider liger --format tsv --columns digest,external_id | grep "hidden$1-" | grep 2026-01-02 | cut -f1 |
		xargs "$KI" show --store "$S" --json | jq -r '[.evidence, .reruns[-1].verdict] | join(" ")'
}

# --- verified -----------------------------------------------------------------------------------------------------------------------
rerun "$D/one" "$D/key1" "$D/bundles"
is "$rc $(grep -c ' passed .* confirmed$' "$D/out") $(grep -c ' passed .* slower_than_rerun$' "$D/out")" '0 1 1' 'one record holds, one is slower than its own code now is'
ki verify import "$D/one" --store "$S" --config "$CONFIG"
is "$rc" 0 'signed evidence of it is imported'
is "$(of 1024)" 'verified confirmed' 'a record that its own code confirms on its GPU is verified'
is "$(of 2048)" 'reported slower_than_rerun' 'one that it does not confirm stays reported'
"$KI" list --store "$S" --kernel rms_norm --format tsv --columns digest,external_id | grep '^sha256' | grep -v 2026-01-02 | head -1 | cut -f1 |
	xargs "$KI" show --store "$S" --json >"$D/rerun.json"
is "$(jq -r '.cites.implementation.spec | [.projectRevision.commit, .projectRevision.version, .support.dtypes[0], .callable.language] | join(" ")' "$D/rerun.json")" \
	'0701bab26619b088738d096b2737e785d02dbbbc 0.5.10 bf16 triton' 'the rerun names commit and release, and what the record names'
is "$(jq -r '.provider + " " + .cites.project.spec.name' "$D/rerun.json")" 'liger Liger-Kernel' 'it is a run of upstream'\''s project, by its provider'
ki verify replay "$D"/one/evidence-*.jsonl --config "$CONFIG"
is "$rc $(grep -c 'from its samples; signature good$' "$D/out")" '0 2' 'its verdicts can be made again from its samples'

# --- replicated ---------------------------------------------------------------------------------------------------------------------
rerun "$D/two" "$D/key2" "$D/bundles"
ki verify import "$D/two" --store "$S" --config "$CONFIG"
is "$rc $(of 1024)" '0 verified confirmed' 'another key on the same GPU and machine counts once'
elsewhere() { # FILTER - the evidence of `two` with another host, signed by the second key
	mkdir -p "$D/$1"
	cp -r "$D/two/samples" "$D/$1/"
	while read -r line; do
		printf '%s' "$line" | jq -r .payload | base64 -d | jq -c "$2" | canonical | base64 -w0 >"$D/payload"
		printf '%s' "$line" | jq -c --rawfile p "$D/payload" '.payload = $p | .signatures = []'
	done <"$(ls "$D"/two/evidence-*.jsonl)" >"$D/$1/evidence-$1.jsonl"
	"$B/bin/ki-verify" cosign "$D/$1/evidence-$1.jsonl" --key "$D/key2" >"$D/out" 2>"$D/err"
}
E=.predicate.evidence
elsewhere board "$E.host.uuid = \"sha256:1\" | $E.batch = \"b1\""
ki verify import "$D/board" --store "$S" --config "$CONFIG"
is "$rc $(of 1024)" '0 verified confirmed' 'nor does another board in the same machine replicate'
elsewhere host "$E.host.uuid = \"sha256:2\" | $E.host.machine = \"elsewhere\" | $E.batch = \"b2\""
ki verify import "$D/host" --store "$S" --config "$CONFIG"
is "$rc $(of 1024)" '0 replicated confirmed' 'another key on another GPU of another machine does'
is "$(of 2048)" 'reported slower_than_rerun' 'for the record that held, and no other'

# --- other code ---------------------------------------------------------------------------------------------------------------------
rerun "$D/other" "$D/key1" "$D/altered"
is "$rc $(grep -c ' passed .* inconclusive$' "$D/out")" '0 2' 'files that are not those of the commit settle nothing'

plan
