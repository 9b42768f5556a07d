#!/bin/sh
# Upstream's code in a sealed child, as far as it goes without a GPU: on the CPU device, with a child that needs neither PyTorch nor CUDA. The
# process, its seal, the memory that it is given, what it leaves there and how the dishonest ones are found out are the real thing.
cd "$(dirname "$0")/.." && . tests/tap.sh

if ! command -v python3 >/dev/null; then
	skip 'the child' 'no python3 here'
	plan
	exit 0
fi
unset KI_KEY PYTHONPATH
export PYTHONDONTWRITEBYTECODE=1
export TMPDIR="$D/a folder of its own with a long name for what is temporary"
mkdir "$TMPDIR"
"$B/bin/ki-verify" keygen "$D/key" >"$D/entry" 2>"$D/err"
PLAIN_FILES=$(jq -r .code.files fixtures/verify/bundles/bundles/*.json) # of liger-kernel, which is not installed here
export PLAIN_FILES
run() { # CHILD OPTION… - the job of the fixture, whose bundle could be replayed too
	child=$1
	shift
	rm -rf "$D/run"
	"$B/bin/ki-verify" run fixtures/verify/upstream.jsonl --out "$D/run" --key "$D/key" --device cpu --bundles fixtures/verify/bundles --child "$child" "$@" \
		>"$D/out" 2>"$D/err"
	rc=$?
}
evidence() { # FILTER
	jq -r .payload "$D"/run/evidence-*.jsonl | base64 -d | jq -r ".predicate.evidence | $1"
}
says() { # TEXT SENTENCE - the job failed at run time, with that text
	is "$(evidence '.status + ": " + .text' | grep -cF -- "$1" | tr -d '\n'; evidence .status)" "1runtime_error" "$2"
}
child() { # NAME SCRIPT - a child that says what it can do in place of being there
	printf '#!/usr/bin/env python3\n%s\n' "$2" >"$D/$1"
	chmod +x "$D/$1"
	run "$D/$1" --only-child
}

run tests/plain_child.py --only-child
is "$rc $(evidence '.status, .code.by')" '0 passed
child' 'an honest child passes every check of a rerun'
is "$(evidence '.controls[] | select(.name | startswith("child_")) | "\(.name) \(.refused)"' | sort | tr '\n' ' ')" \
	'child_cached true child_forged true child_hung true child_killed true child_stale true ' 'dishonest ones are refused in the same batch'
has "$D/err" 'control child_killed: refused, the child was killed by signal 9' 'a child that is killed in a call is said to have been'
has "$D/err" 'control child_hung: refused, the child gave no answer in time and was killed' 'a child that hangs is killed'
is "$(evidence '.controls | length')" 18 'beside those of native code'
is "$(find "$TMPDIR" "$D" -maxdepth 1 -name 'ki-child-*' | wc -l)" 0 'no scratch folder is left'

child liar 'import sys
sys.path.insert(0, "'"$TOP"'/verify")
import hostile
hostile.role = lambda name, honest: honest # the controls are as honest as the rest
exec(open("'"$TOP"'/tests/plain_child.py").read().replace("__file__", repr("'"$TOP"'/tests/x")))'
has "$D/out" 'VOID: the control child_' 'a batch that accepts a dishonest child is void'

PLAIN_FILES=sha256:0000000000000000000000000000000000000000000000000000000000000000
run tests/plain_child.py --only-child
says 'the child has other files of liger-kernel than its bundle was captured with' 'a child with other files than the bundle is not asked'

# --- the seal -----------------------------------------------------------------------------------------------------------------------
child sealed 'import ctypes, json, os, resource, socket
def attempt(what):
    try:
        what()
        return "done"
    except OSError as e:
        return e.errno
def of(name, *words):
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*words) < 0:
        raise OSError(ctypes.get_errno(), "")
print(json.dumps({"error": "; ".join("%s %s" % (n, attempt(f)) for n, f in [
    ("inet", lambda: socket.socket(socket.AF_INET)), ("inet6", lambda: socket.socket(socket.AF_INET6)), ("unix", lambda: socket.socket(socket.AF_UNIX)),
    ("netlink", lambda: socket.socket(socket.AF_NETLINK)), ("outside", lambda: open("'"$D"'/x", "w")),
    ("cache", lambda: open(os.path.dirname(os.environ["TRITON_CACHE_DIR"]) + "/x", "w")),
    ("scratch", lambda: open(os.environ["TMPDIR"] + "/x", "w"))]) + "; session %s; core %d; %s" % (os.getsid(0) == os.getpid(),
    resource.getrlimit(resource.RLIMIT_CORE)[1], "key" if "KI_KEY" in os.environ else "no key") if os.environ.get("SEAL") == "files" else
    # what the system lets each process do to itself, so that nothing but the seal can refuse it
    "; ".join("%s %s" % (n, attempt(f)) for n, f in [
    ("memory", lambda: of("process_vm_readv", os.getpid(), None, 0, None, 0, 0)), ("ptrace", lambda: of("ptrace", 0, 0, 0, 0)),
    ("kill", lambda: os.kill(os.getppid(), 0)), ("io_uring", lambda: of("syscall", 425, 0, None)), ("x32", lambda: of("syscall", 0x40000000 + 39))])}))'
has "$D/out" 'memory 1; ptrace 1' 'a child looks into no process'
if python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).syscall(444, None, 0, 1) < 6)'; then
	has "$D/out" 'kill 1' 'nor signals the process that started it'
else
	skip 'a child signals only what it started' 'this kernel cannot see to it'
fi
has "$D/out" 'io_uring 1; x32 1' 'and goes round its seal neither by io_uring nor by another ABI'
export SEAL=files TRITON_CACHE_DIR="$D/cache/of/triton"
run "$D/sealed" --only-child
unset SEAL TRITON_CACHE_DIR
has "$D/out" 'inet 1; inet6 1; unix done; netlink 1' 'it has no network'
if grep -q 'may write files anywhere' "$D/err"; then
	skip 'a child writes in its scratch folder only' 'no Landlock here'
else
	has "$D/out" 'outside 13; cache 13; scratch done' 'it writes in its scratch folder only, also where its cache is not there yet'
fi
has "$D/out" 'session True; core 0; no key' 'has a session of its own, leaves no core, and knows no key'

# --- children that are no use -------------------------------------------------------------------------------------------------------
child mute 'import sys; sys.exit(3)'
says 'the child ended with exit code 3 before it answered' 'one that ends at once is no answer'
child babble 'print("hello")'
says 'said something that is no answer' 'nor is one that babbles'
child flood 'import sys
while True: sys.stdout.write("x" * 65536)'
says 'said something that is no answer' 'nor one that never ends its line'
child rude 'import json
print(json.dumps({"error": "\x1b[2J" + "\u00e9" * 300}))'
is "$(evidence .text | grep -c 'rude: ?\[2J??*$')" 1 'what a child says is fit for a terminal and a report'
run "$D/none" --only-child
says 'cannot run it: No such file or directory' 'one that is not there is said to be missing'
is "$rc" 0 'each is an outcome of the job, not of the batch'

# --- verify/child.py itself ---------------------------------------------------------------------------------------------------------
cat >"$D/bare" <<-END
	#!/bin/sh
	exec python3 -S "$TOP/verify/child.py" "\$@"
END
chmod +x "$D/bare"
run "$D/bare" --only-child
says "ModuleNotFoundError: No module named 'torch'" 'without PyTorch it says so'
python3 verify/child.py >"$D/out" 2>"$D/err"
is "$?" 64 'it is started by ki-verify only'
plan
