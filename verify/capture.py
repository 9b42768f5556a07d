#!/usr/bin/env python3
"""Writes bundles: what upstream's own code does on the GPU for the case of a job, to be replayed by ki-verify (docs/verify-files.md).

For each job of runner `upstream`, the public callable of liger-kernel is called as upstream's benchmark script calls it. Every Triton
launch is noted in order, with its cubin, geometry and arguments, and every fill and copy; a profiler trace of the same call says what
else ran on the device. Uses the Python packages that are installed; belongs to nobody's measured path. How upstream's script makes
inputs and calls is in cases.py, how it measures in source.py, beside this file.

exit: 0 done; 1 some job could not be captured; 64 usage; 66 no such file; 69 no GPU, or a package is missing or of another version
"""
import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile

from cases import DTYPES, Unable, case_of
from installed import files_digest, liger_folder, package_version
from source import source_times

TRITON = "3.6"
MOST_FOREIGN = 1000  # names kept of a call's
WIDTH = {"i1": 1, "u1": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "fp16": 2, "bf16": 2, "i32": 4, "u32": 4, "fp32": 4, "f32": 4,
         "i64": 8, "u64": 8, "fp64": 8, "f64": 8}


def stop(code, words):
    print("capture.py: " + words, file=sys.stderr)
    sys.exit(code)


def canonical(value):
    """RFC 8785 text of a value without fractions and with ASCII keys, which is all that a bundle holds."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def packages():
    """torch, triton and the folder of liger_kernel; ends the process when one is missing or unknown."""
    try:
        import torch
        import triton
    except ImportError as e:
        stop(69, "%s: install PyTorch with Triton %s, or run this where they are" % (e, TRITON))
    if not triton.__version__.startswith(TRITON + "."):
        stop(69, "Triton %s is installed; how launches look is known for Triton %s only" % (triton.__version__, TRITON))
    if not torch.cuda.is_available():
        stop(69, "PyTorch sees no GPU here")
    folder = liger_folder()
    if not folder:
        stop(69, "liger-kernel is not installed (pip install liger-kernel==VERSION, or put the src folder of a commit on PYTHONPATH)")
    return torch, triton, folder


# ---- what a call does on the device ----

class Recorder:
    """Notes Triton launches, fills with zero and whole copies, in order. Holds storages, so that no address means two things."""

    def __init__(self, torch):
        self.torch, self.ops, self.held = torch, [], []

    def place(self, tensor):
        storage = tensor.untyped_storage()
        self.held.append(storage)
        return {"at": storage.data_ptr(), "bytes": storage.nbytes(), "offset": tensor.data_ptr() - storage.data_ptr()}

    def launch(self, function, kernel, grid, args, kwargs):
        import triton
        binder = function.device_caches[triton.runtime.driver.active.get_current_device()][4]
        bound, _, _ = binder(*args, **kwargs)
        if callable(grid):
            grid = grid(bound)
        m = kernel.metadata
        if m.num_ctas != 1 or m.launch_cooperative_grid or m.launch_pdl or m.global_scratch_size or m.profile_scratch_size:
            raise Unable("%s needs clusters, cooperation or scratch" % m.name)
        values = []
        for name, kind in kernel.src.signature.items():
            if kind == "constexpr":
                continue
            values.append(self.argument(kind, bound[name]))
        self.ops.append({"op": "launch", "name": m.name, "cubin": kernel.asm["cubin"], "threads": 32 * m.num_warps, "shared": m.shared,
                         "grid": [int(g) for g in grid] + [1] * (3 - len(grid)), "args": values})

    def argument(self, kind, value):
        import struct
        if kind.startswith("*"):
            return {"place": self.place(value)} if value is not None else {"bytes": 8, "value": 0}
        width = WIDTH.get(kind)
        if not width:
            raise Unable("an argument of type %s" % kind)
        if kind in ("fp32", "f32"):
            return {"bytes": 4, "value": struct.unpack("<I", struct.pack("<f", value))[0]}
        if kind[0] not in "iu" or not 0 <= int(value) < 2**53:
            raise Unable("an argument of type %s with value %r" % (kind, value))
        return {"bytes": width, "value": int(value)}

    def mode(self):
        torch, recorder = self.torch, self
        from torch.utils._python_dispatch import TorchDispatchMode
        zeros = {"aten::zeros", "aten::zeros_like", "aten::new_zeros", "aten::zero_"}
        copies = {"aten::clone", "aten::copy_", "aten::_to_copy"}

        class Watch(TorchDispatchMode):
            def __torch_dispatch__(self, func, types_, args=(), kwargs=None):
                out = func(*args, **(kwargs or {}))
                name = func._schema.name
                if not isinstance(out, torch.Tensor) or not out.is_cuda or not out.numel():
                    return out
                size = out.numel() * out.element_size()
                if (name in zeros or (name == "aten::fill_" and not isinstance(args[1], torch.Tensor) and args[1] == 0)) and recorder.dense(out):
                    recorder.ops.append({"op": "fill", "place": recorder.place(out), "bytes": size})
                elif name in copies:
                    source = args[1] if name == "aten::copy_" else args[0]
                    if source.is_cuda and source.dtype == out.dtype and source.stride() == out.stride() and recorder.dense(out):
                        recorder.ops.append({"op": "copy", "place": recorder.place(out), "from": recorder.place(source), "bytes": size})
                return out

        return Watch()

    @staticmethod
    def dense(t):
        """Every byte between its first and last element is one of its own."""
        span = 1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride()))
        return span == t.numel() and all(s >= 0 for s in t.stride())


def device_work(torch, call):
    """Makes a call under a profiler: its result, and the names of what it did on the device, in order."""
    from torch.profiler import ProfilerActivity, profile
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as trace:
        out = call()
        torch.cuda.synchronize()
    device = [e for e in trace.events() if e.device_type == torch.autograd.DeviceType.CUDA and e.time_range.elapsed_us() >= 0]
    device.sort(key=lambda e: e.time_range.start)
    return out, [e.name for e in device]


def traced(torch, recorder, call):
    """Makes a call and returns its result, what the recorder noted and, from a trace of the same call, names of device work in order."""
    from triton.runtime.jit import JITFunction
    run, first = JITFunction.run, len(recorder.ops)

    def noted(function, *args, grid, warmup, **kwargs):
        kernel = run(function, *args, grid=grid, warmup=warmup, **kwargs)
        if not warmup:
            recorder.launch(function, kernel, grid, args, kwargs)
        return kernel

    def watched():
        with recorder.mode():
            return call()

    JITFunction.run = noted
    try:
        out, names = device_work(torch, watched)
    finally:
        JITFunction.run = run
    return out, recorder.ops[first:], names


def explains(op, name):
    if op["op"] == "launch":
        return name == op["name"]
    return "Memset" in name or "FillFunctor" in name if op["op"] == "fill" else "Memcpy" in name or "copy" in name


def foreign_of(ops, names):
    """Device work that no noted operation explains."""
    ops, foreign = list(ops), []
    for name in names:
        if ops and explains(ops[0], name):
            ops.pop(0)
        else:
            foreign.append(name)
    if ops:
        raise Unable("the trace does not show %s" % (ops[0].get("name") or ops[0]["op"]))
    return foreign


class Layout:
    """Places in memory to numbered buffers; overlapping ones are one buffer."""

    def __init__(self, torch, case):
        self.torch, self.case, self.ranges, self.named = torch, case, [], {}

    def add(self, place):
        low, high = place["at"], place["at"] + place["bytes"]
        touching = [r for r in self.ranges if r[0] < high and low < r[1]]
        self.ranges = [r for r in self.ranges if r not in touching]
        self.ranges.append((min([low] + [r[0] for r in touching]), max([high] + [r[1] for r in touching])))

    def name(self, role, name, tensor):
        self.named.setdefault(tensor.untyped_storage().data_ptr(), []).append((role, name, tensor))

    def reference(self, place):
        for i, (low, high) in enumerate(self.ranges):
            if low <= place["at"] < high:
                return {"buffer": i, "offset": place["at"] + place["offset"] - low}
        raise Unable("a place outside of every buffer")

    def buffers(self, blobs):
        out = []
        for low, high in self.ranges:
            b = {"bytes": high - low, "role": "scratch"}
            for role, name, t in self.named.get(low, []):
                if t.data_ptr() != low or t.numel() * t.element_size() != high - low or not Recorder.dense(t):
                    raise Unable("%s is not the whole of its memory" % name)
                b.update(dtype={v: k for k, v in DTYPES.items()}.get(str(t.dtype).split(".")[1], "other"), shape=list(t.shape),
                         strides=list(t.stride()), offset=0)
                if role == "constant":
                    blob = bytes(t.detach().contiguous().view(self.torch.uint8).cpu().numpy().tobytes())
                    blobs[digest(blob)] = blob
                    b.update(role="constant", constant=digest(blob))
                elif role in ("input", "parameter", "upstream"):
                    b.update(role=role, reads=name)
                else:
                    b.update(role=role if b["role"] == "scratch" else b["role"], writes=name)
            out.append(b)
        return out


def phases(torch, job, case):
    """The setup and the timed part of a pass: recorded operations, foreign names, and the layout of what they touch."""
    recorder = Recorder(torch)
    forward, kind = None, job["pass"]
    results = {}
    setup, setup_foreign = [], []

    def full():
        out = case.forward()
        return out, case.backward(out)

    def clear():
        for leaf in case.leaves.values():
            leaf.grad = None

    clear()
    if kind == "forward":
        out, ops, names = traced(torch, recorder, case.forward)
        results = {"output": out}
    elif kind == "full":
        (out, grads), ops, names = traced(torch, recorder, full)
        results = {"output": out, "gradient": grads}
    else:
        forward, setup, setup_names = traced(torch, recorder, case.forward)
        setup_foreign = foreign_of(setup, setup_names)
        grads, ops, names = traced(torch, recorder, lambda: case.backward(forward))
        results = {"output": forward, "gradient": grads}
    return recorder, results, setup, setup_foreign, ops, foreign_of(ops, names)


def touched(ops):
    for op in ops:
        for a in op.get("args", []):
            if "place" in a:
                yield a["place"]
        for field in ("place", "from"):
            if field in op:
                yield op[field]


def lowered(ops, layout, kernels, blobs):
    out = []
    for op in ops:
        if op["op"] == "launch":
            blobs[digest(op["cubin"])] = op["cubin"]
            k = {"name": op["name"], "cubin": digest(op["cubin"]), "threads": op["threads"], "shared": op["shared"]}
            if k not in kernels:
                kernels.append(k)
            args = [layout.reference(a["place"]) if "place" in a else a for a in op["args"]]
            out.append({"op": "launch", "kernel": kernels.index(k), "grid": op["grid"], "args": args})
        elif op["op"] == "fill":
            out.append({"op": "fill", "to": layout.reference(op["place"]), "bytes": op["bytes"]})
        else:
            out.append({"op": "copy", "to": layout.reference(op["place"]), "from": layout.reference(op["from"]), "bytes": op["bytes"]})
    return out


# ---- bundles ----

def write(path, data):
    """Whole or not at all."""
    if os.path.exists(path):
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    handle, name = tempfile.mkstemp(dir=os.path.dirname(path))
    with os.fdopen(handle, "wb") as f:
        f.write(data)
        f.flush()
        os.fsync(f.fileno())
    os.replace(name, path)


def key_of(job):
    """What a bundle is found by: the case, the pass, whose code, and which."""
    source = job.get("source", {})
    code = {"commit": source["commit"]} if source.get("commit") else {"version": source.get("version", "")}
    return digest(canonical({"code": code, "kernel": job["kernel"], "pass": job["pass"], "provider": job["provider"],
                             "workload": digest(canonical_any(job["workload"]))}))


def canonical_any(value):
    """RFC 8785 of a workload body, which may hold fractions (an eps): numbers as ECMAScript prints them."""
    def number(v):
        if isinstance(v, float):
            if v == int(v) and abs(v) < 1e21:
                return str(int(v))
            text = repr(v)
            if "e" in text:
                mantissa, exponent = text.split("e")
                exponent = int(exponent)
                if -7 < exponent < 0:
                    digits = mantissa.replace(".", "")
                    return "0." + "0" * (-exponent - 1) + digits
                return mantissa + "e" + ("+" if exponent > 0 else "-") + str(abs(exponent))
            return text
        return str(v)

    def text(v):
        if isinstance(v, dict):
            return "{" + ",".join(json.dumps(k, ensure_ascii=False) + ":" + text(v[k]) for k in sorted(v)) + "}"
        if isinstance(v, list):
            return "[" + ",".join(map(text, v)) + "]"
        if isinstance(v, bool) or v is None or isinstance(v, str):
            return json.dumps(v, ensure_ascii=False)
        return number(v)

    return text(value).encode()


def time_source(torch, job):
    case = case_of(torch, job)
    compile_once(job, case)
    return source_times(torch, case, job["pass"], job["reported"].get("budget_ms", 100))


def replayable(torch, job, case, blobs):
    """What the replay of a bundle needs, and what the call does beyond it."""
    held, results, setup, setup_foreign, timed, foreign = phases(torch, job, case)
    layout, kernels = Layout(torch, case), []
    written_names = [(role, n, t) for role, group in results.items() for n, t in group.items()]
    contract = [("input", n, t) for n, t in case.inputs.items()] + [("upstream", n, t) for n, t in case.upstream.items()]
    contract += written_names + [("constant", "", t) for t in case.constants]
    known = {t.untyped_storage().data_ptr() for _, _, t in contract}
    made_before = {p["at"] for p in touched(setup)} - known
    needs_setup = any(p["at"] in made_before for p in touched(timed))
    if needs_setup:
        foreign = setup_foreign + foreign
    if foreign:
        return None, foreign
    for p in list(touched(timed)) + (list(touched(setup)) if needs_setup else []):
        layout.add(p)
    for role, n, t in contract:
        layout.name("parameter" if role == "input" and n in case.parameters else role, n, t)
    parts = {"setup": lowered(setup, layout, kernels, blobs) if needs_setup else [], "timed": lowered(timed, layout, kernels, blobs),
             "buffers": layout.buffers(blobs), "kernels": kernels}
    del held  # until here no address meant two things
    return parts, []


def all_foreign(torch, job, case):
    """Names of everything that a call of a framework's does on the device."""
    forward = case.forward() if job["pass"] == "backward" else None
    call = {"forward": case.forward, "full": lambda: case.backward(case.forward()), "backward": lambda: case.backward(forward)}[job["pass"]]
    return device_work(torch, call)[1]


def capture(torch, job, code, source, out):
    case, blobs = case_of(torch, job), {}
    compile_once(job, case)
    liger = job["provider"].startswith("liger")
    parts, foreign = replayable(torch, job, case, blobs) if liger else (None, all_foreign(torch, job, case))
    if parts is None:  # a child runs it; what it does is said, and nothing of it kept
        parts, blobs = {"setup": [], "timed": [], "buffers": [], "kernels": []}, {}
        if not foreign:
            raise Unable("the call does nothing on the device")
    properties = torch.cuda.get_device_properties(0)
    bundle = {"type": "bundle", "version": 1, "kernel": job["kernel"], "provider": job["provider"], "pass": job["pass"],
              "workload": digest(canonical_any(job["workload"])), "code": code,
              "gpu": {"product": properties.name, "architecture": "sm_%d%d" % (properties.major, properties.minor)},
              "foreign": [name[:200] for name in foreign[:MOST_FOREIGN]], "source": source, **parts}
    text = canonical(bundle)
    for name, blob in blobs.items():
        write(os.path.join(out, "blobs", name[7:]), blob)
    write(os.path.join(out, "bundles", digest(text)[7:] + ".json"), text)
    link = os.path.join(out, "cases", key_of(job)[7:])
    if os.path.exists(link):
        os.unlink(link)
    write(link, (digest(text) + "\n").encode())
    return bundle


def compile_once(job, case):
    out = case.forward()
    if job["pass"] != "forward":
        case.backward(out)


def warm(torch, jobs):
    """Calls once, so that Triton's own cache holds what the capture will need."""
    for job in jobs:
        try:
            compile_once(job, case_of(torch, job))
            torch.cuda.synchronize()
        except Exception as e:
            print("capture.py: %s" % e, file=sys.stderr)


def attempt(torch, job, work):
    """What `work` returns; None, said, when it fails: whatever upstream's code throws concerns its job alone."""
    try:
        return work()
    except Unable as e:
        print("capture.py: %s: %s" % (job["subject"]["externalId"], e), file=sys.stderr)
    except Exception as e:
        print("capture.py: %s: %s: %s" % (job["subject"]["externalId"], type(e).__name__, e), file=sys.stderr)
    finally:
        torch.cuda.empty_cache()
    return None


def read_jobs(path):
    try:
        with open(path, encoding="utf-8") as f:
            jobs = [json.loads(line) for line in f if line.strip()]
    except FileNotFoundError:
        stop(66, path + ": no such file")
    except ValueError as e:
        stop(65, "%s: %s" % (path, e))
    return [j for j in jobs if j.get("runner") == "upstream"]


def main():
    parser = argparse.ArgumentParser(prog="capture.py", description="Captures what upstream's code does for each job, for ki-verify to replay.")
    parser.add_argument("jobs", help="jobs of runner upstream (ki verify plan --runner upstream)")
    parser.add_argument("--out", required=True, metavar="DIR", help="where bundles go")
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="compile in N processes first")
    parser.add_argument("--warm", metavar="I/N", help=argparse.SUPPRESS)
    try:
        options = parser.parse_args()
    except SystemExit as e:
        sys.exit(64 if e.code else 0)
    jobs = read_jobs(options.jobs)
    torch, triton, folder = packages()
    if options.warm:
        i, n = map(int, options.warm.split("/"))
        return warm(torch, jobs[i::n])
    if options.processes > 1:
        words = [sys.executable, os.path.abspath(__file__), options.jobs, "--out", options.out, "--warm"]
        for p in [subprocess.Popen(words + ["%d/%d" % (i, options.processes)]) for i in range(options.processes)]:
            p.wait()
    code = {"package": "liger-kernel", "version": package_version(), "files": files_digest(folder), "triton": triton.__version__,
            "torch": torch.__version__, "python": sys.version.split()[0]}
    failed = 0
    # Times first: a profiler, once used, slows every later launch of the process down.
    times = [attempt(torch, job, lambda job=job: time_source(torch, job)) for job in jobs]
    for job, source in zip(jobs, times):
        bundle = source and attempt(torch, job, lambda job=job, source=source: capture(torch, job, code, source, options.out))
        failed += not bundle
        if bundle:
            print("%s: %d launches%s" % (job["subject"]["externalId"], sum(o["op"] == "launch" for o in bundle["timed"]),
                                         "; foreign: " + ", ".join(bundle["foreign"]) if bundle["foreign"] else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
