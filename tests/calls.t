#!/bin/sh
# verify/cases.py: what upstream's scripts call, on the CPU. $KI_PYTHON, else python3, with PyTorch (and transformers for rope) runs the
# adapters; without PyTorch what needs none is left. Liger's own need a GPU.
cd "$(dirname "$0")/.." && . tests/tap.sh

PYTHON=${KI_PYTHON:-python3}
if ! command -v "$PYTHON" >/dev/null; then
	skip 'cases.py' "no $PYTHON here"
	plan
	exit 0
fi
export PYTHONDONTWRITEBYTECODE=1
refusal() { # EDIT of the job: what case_of says of it
	PYTHONPATH=verify "$PYTHON" -c 'import cases, json, sys
job = json.loads(open("fixtures/verify/upstream.jsonl").read())
job.update(json.loads(sys.argv[1]))
try:
	cases.case_of(None, job)
except cases.Unable as e:
	print(e)' "$1" 2>"$D/err"
}
is "$(refusal '{"kernel":"relu"}')" 'no adapter for relu of liger' 'an operation without an adapter is refused'
is "$(refusal '{"provider":"apex"}')" 'no adapter for rms_norm of apex' 'so is a provider without one'
is "$(refusal '{"pass":"no-grad-forward"}')" "no pass no-grad-forward in upstream's scripts" 'and a pass that upstream does not time'

for k in $(PYTHONPATH=verify "$PYTHON" -c 'import cases; print(*sorted({k for k, p in cases.BY_NAME}))'); do
	[ -f "kernels/$k.cu" ]
	ok $? "$k is an operation with a contract"
done

if "$PYTHON" -c 'import torch' 2>/dev/null; then
	"$PYTHON" tests/call_formulas.py >"$D/out" 2>"$D/err"
	is "$?$(grep '^not ok' "$D/out")" 0 "PyTorch's and transformers' adapters give what formulas in fp64 give, in memory of the caller"
	has "$D/out" "1..$(grep -c '^ok' "$D/out")" 'to the last one'
	grep '# SKIP' "$D/out" | sed 's/^ok [0-9]* - //; s/ # SKIP / /' | while read -r name why; do echo "# $name: $why"; done
else
	skip "PyTorch's and transformers' adapters give what formulas in fp64 give" 'no PyTorch here'
fi
plan
