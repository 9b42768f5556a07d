#!/bin/sh
# ki-verify end to end on the CPU device: jobs in, signed evidence out, replayed. What needs a GPU is in `make gpu-test`.
cd "$(dirname "$0")/.." && . tests/tap.sh

verify() { # output in $D/out, messages in $D/err, exit code in $rc
	"$B/bin/ki-verify" "$@" >"$D/out" 2>"$D/err" </dev/null
	rc=$?
}
JOBS=fixtures/verify/jobs.jsonl
KEY=$D/key.pem
unset KI_KEY

# --- keys --------------------------------------------------------------------------------------------------------------------------
verify keygen "$KEY"
is "$rc $(stat -c %a "$KEY")" '0 600' 'a new key is for its owner alone'
cp -r config "$D/config"
sed -i "s|^]\$|$(cat "$D/out")\n]|" "$D/config/signers.json"
cp "$D/out" "$D/entry"
verify keygen "$KEY"
is "$rc" 74 'a key that is there is not overwritten'

# --- a batch -----------------------------------------------------------------------------------------------------------------------
verify run $JOBS --out "$D/e" --key "$KEY" --device cpu --config "$D/config"
is "$rc" 0 'a batch on the CPU device ends well'
is "$(grep -c ' passed  *not_timed$' "$D/out")" 5 'every job passes its check, and none is timed'
has "$D/out" '13 controls refused of 13' 'every control that needs no GPU is refused'
has "$D/out" 'the CPU device checks results and times nothing' 'it says that nothing was timed'
is "$(lines "$(ls "$D"/e/evidence-*.jsonl)")" 5 'there is one signed statement a job'
[ ! -d "$D/e/samples" ]
ok $? 'without times there are no samples'

verify replay "$D"/e/evidence-*.jsonl --config "$D/config"
is "$rc $(grep -c 'signature good$' "$D/out")" '0 5' 'a replay finds every verdict and every signature as they were'
verify replay "$D"/e/evidence-*.jsonl --config config
is "$rc $(grep -c 'signed by a key that is not approved' "$D/out")" '0 5' 'a signature of a stranger is called that'
sed 's/"payload":"\(....\)/"payload":"AAAA/' "$D"/e/evidence-*.jsonl >"$D/altered.jsonl"
verify replay "$D/altered.jsonl" --config "$D/config"
is "$rc" 65 'altered statements are refused'

"$B/bin/ki-verify" keygen "$D/second.pem" >"$D/second" 2>"$D/err"
cp "$D"/e/evidence-*.jsonl "$D/two.jsonl"
verify cosign "$D/two.jsonl" --key "$D/second.pem"
is "$rc $(grep -o '"keyid"' "$D/two.jsonl" | wc -l | tr -d ' ')" '0 10' 'a second runner adds its signature'
verify replay "$D/two.jsonl" --config "$D/config"
is "$rc $(grep -c 'signature good$' "$D/out")" '0 5' 'the first one still holds'

# --- a broken check makes a batch void ---------------------------------------------------------------------------------------------
cp -r "$D/config" "$D/broken"
sed -i 's/"factor": 2,/"factor": 1e8,/; s/"floorUlps": 1,/"floorUlps": 1e8,/' "$D/broken/tolerances.json"
verify run $JOBS --out "$D/v" --key "$KEY" --device cpu --config "$D/broken"
is "$rc" 0 'a void batch is a result too'
has "$D/out" 'VOID: the control ' 'with tolerances far too wide a control is accepted, and the batch is void'
is "$(grep -c ' incomplete_evidence  *invalid_run$' "$D/out")" 5 'and none of its jobs has a verdict'
verify replay "$D"/v/evidence-*.jsonl --config "$D/config"
is "$rc $(grep -c '^.* invalid_run ' "$D/out")" '0 5' 'which a replay confirms'

# --- upstream's own code -------------------------------------------------------------------------------------------------------------
verify run fixtures/verify/upstream.jsonl --out "$D/u" --key "$KEY" --device cpu --config "$D/config"
is "$rc" 1 'a job of runner upstream without bundles is not run'
has "$D/err" "running upstream's code needs --bundles DIR" 'and says what is missing'
verify run fixtures/verify/upstream.jsonl --out "$D/u" --key "$KEY" --device cpu --config "$D/config" --bundles "$D"
is "$rc" 1 'nor without its own bundle'
has "$D/err" 'no bundle of rms_norm forward by liger' 'and names it'
verify run fixtures/verify/upstream.jsonl --out "$D/u" --key "$KEY" --device cpu --config "$D/config" --bundles fixtures/verify/bundles
is "$rc $(grep -c "runtime_error .*upstream's kernels need a GPU" "$D/out")" '0 1' 'with it, on the CPU device, it is said that its kernels need a GPU'

cp -r config "$D/h200"
cp fixtures/verify/verified/signers.json "$D/h200/"
verify replay fixtures/verify/verified/evidence-h200.jsonl fixtures/verify/verified/evidence-h200-child.jsonl --config "$D/h200"
is "$rc $(grep -c ' confirmed .*from its samples; signature good$' "$D/out")" '0 35' 'verdicts that made records verified, on an H200, are recomputed from their samples'

# --- what goes wrong ---------------------------------------------------------------------------------------------------------------
verify run fixtures/verify/hostile.jsonl --out "$D/h" --key "$KEY" --device cpu --config "$D/config" --quiet
is "$rc" 1 'lines that are no jobs are said, and the rest is run'
is "$(grep -c '^ki-verify: fixtures/verify/hostile.jsonl:[0-9]' "$D/err")" 8 'each with its line'
has "$D/out" 'softmax full 8x33 fp32' 'the job among them is run'
sed 's/"wall_seconds":60/"memory_bytes":1000,"wall_seconds":60/' $JOBS | head -1 >"$D/small.jsonl"
verify run "$D/small.jsonl" --out "$D/m" --key "$KEY" --device cpu --config "$D/config"
is "$rc $(grep -c ' resource_exceeded  *invalid_run' "$D/out")" '0 1' 'a case beyond its memory is resource_exceeded'
printf '#!/bin/sh\nread -r line\nkill -9 $$\n' >"$D/die"
printf '#!/bin/sh\nread -r line\nyes | head -c 3000000\n' >"$D/flood"
chmod +x "$D/die" "$D/flood"
head -1 $JOBS >"$D/one.jsonl"
verify run "$D/one.jsonl" --out "$D/w" --key "$KEY" --device cpu --config "$D/config" --worker "$D/die" --quiet
is "$rc $(grep -c 'runtime_error .*killed by signal 9' "$D/out")" '0 1' 'a measured process that is killed is a runtime_error'
verify run "$D/one.jsonl" --out "$D/w" --key "$KEY" --device cpu --config "$D/config" --worker "$D/flood" --quiet
is "$rc $(grep -c 'runtime_error ' "$D/out")" '0 1' 'one that floods its pipe is a runtime_error'

verify run $JOBS --out "$D/n" --device cpu --config "$D/config"
is "$rc" 64 'evidence is never unsigned'
verify run "$D/none" --out "$D/n" --key "$KEY" --device cpu --config "$D/config"
is "$rc" 66 'a file of jobs that is not there is not found'
verify run $JOBS --out "$D/n" --key "$D/entry" --device cpu --config "$D/config"
is "$rc" 78 'what is no key is no key'
sed -i 's/"exact"/"exakt"/; s/"reason"/"raison"/' "$D/broken/tolerances.json"
verify run "$D/one.jsonl" --out "$D/n" --key "$KEY" --device cpu --config "$D/broken" --quiet
has "$D/out" 'runtime_error' 'a wrong table of tolerances stops every measurement'

# --- no GPU here -------------------------------------------------------------------------------------------------------------------
if [ -e /dev/nvidia0 ]; then
	skip 'without a GPU each command says so' 'there is one'
else
	verify run $JOBS --out "$D/g" --key "$KEY" --config "$D/config"
	is "$rc $(lines "$D/err")" '69 1' 'without a GPU or nvcc a run says which, and ends'
	verify gpu-info --config "$D/config"
	is "$rc" 69 'so does gpu-info'
fi
verify
is "$rc" 64 'without a verb it is a matter of usage'
verify --help
is "$rc" 0 'help is no error'

# --- records against the published schemas -----------------------------------------------------------------------------------------
if [ -d "$SHARED/schemas" ] && python3 -c 'import jsonschema' 2>/dev/null; then
	"$B/tests/test_verify_batch" statements >"$D/statements" 2>"$D/err"
	python3 - "$SHARED/schemas" "$D/statements" >"$D/out" 2>"$D/err" <<'P'
import json, sys, jsonschema
files = {'SoftwareProject': 'software-project', 'ImplementationRevision': 'implementation-revision', 'BenchmarkProtocol': 'benchmark-protocol',
         'ExecutionEnvironment': 'execution-environment', 'BenchmarkRun': 'benchmark-run'}
n = 0
for line in open(sys.argv[2]):
    for record in json.loads(line)['predicate']['evidence']['records']:
        manifest = dict(record['body'], metadata=record['metadata'])
        schema = json.load(open('%s/%s.v1alpha1.schema.json' % (sys.argv[1], files[manifest['kind']])))
        jsonschema.Draft202012Validator(schema).validate(manifest)
        n += 1
print(n)
P
	is "$? $(cat "$D/out")" '0 10' 'every record of a timed rerun is valid against the schema of its kind'
else
	skip 'every record of a timed rerun is valid against the schema of its kind' 'needs ../shared/schemas and the jsonschema module'
fi
plan
