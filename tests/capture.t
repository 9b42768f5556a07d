#!/bin/sh
# verify/capture.py where it cannot work: what it says, and that it leaves nothing behind. What it captures needs a GPU.
cd "$(dirname "$0")/.." && . tests/tap.sh

if ! command -v python3 >/dev/null; then
	skip 'capture.py' 'no python3 here'
	plan
	exit 0
fi
unset PYTHONPATH
export PYTHONDONTWRITEBYTECODE=1
JOBS=fixtures/verify/upstream.jsonl
capture() { # modules: a folder of stand-ins, or nothing
	PYTHONPATH=$1 python3 -S verify/capture.py $JOBS --out "$D/bundles" >"$D/out" 2>"$D/err"
	rc=$?
}
module() { # FOLDER NAME TEXT
	mkdir -p "$D/$1/$2"
	printf '%s\n' "$3" >"$D/$1/$2/__init__.py"
}
nothing() {
	[ ! -e "$D/bundles" ]
	ok $? "$1 leaves no bundle"
}
GPU='class cuda:
    is_available = staticmethod(lambda: True)
__version__ = "2.11.0"'

capture ''
is "$rc" 69 'without PyTorch it is not available'
has "$D/err" "No module named 'torch': install PyTorch with Triton 3.6" 'and says what to install'
nothing 'no PyTorch'

module other torch "$GPU"
module other triton '__version__ = "3.1.0"'
capture "$D/other"
is "$rc" 69 'with another Triton it is not available'
has "$D/err" 'Triton 3.1.0 is installed; how launches look is known for Triton 3.6 only' 'and names both'
nothing 'another Triton'

module none torch 'class cuda:
    is_available = staticmethod(lambda: False)'
module none triton '__version__ = "3.6.0"'
capture "$D/none"
is "$rc" 69 'without a GPU it is not available'
has "$D/err" 'PyTorch sees no GPU here' 'and says so'
nothing 'no GPU'

module bare torch "$GPU"
module bare triton '__version__ = "3.6.0"'
capture "$D/bare"
is "$rc" 69 'without liger-kernel it is not available'
has "$D/err" 'liger-kernel is not installed' 'and says so'
nothing 'no liger-kernel'

PYTHONPATH='' python3 -S verify/capture.py "$D/no-jobs" --out "$D/bundles" >"$D/out" 2>"$D/err"
is "$?" 66 'a file of jobs that is not there is not found'
python3 -S verify/capture.py >"$D/out" 2>"$D/err"
is "$?" 64 'without operands it is a usage error'

# --- what it shares with ki-verify --------------------------------------------------------------------------------------------------
is "$(PYTHONPATH=verify python3 -S -c 'import capture, json; print(capture.key_of(json.loads(open("'$JOBS'").read()))[7:])')" \
	"$(ls fixtures/verify/bundles/cases)" 'both find a bundle by the same name'
is "$(PYTHONPATH=verify python3 -S -c 'import capture; print(capture.canonical_any({"b":[1e-6,0.5,1e21,2.0,1e-7,True,None],"a":"é"}).decode())')" \
	'{"a":"é","b":[0.000001,0.5,1e+21,2,1e-7,true,null]}' 'its numbers are those of RFC 8785'

plan
