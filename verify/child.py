#!/usr/bin/env python3
"""Runs upstream's own code for ki-verify, which starts it sealed and asks it by lines of JSON (verify/child.h, docs/verify-files.md).

A case comes with handles to memory of the asking process. Upstream's objects are made on that memory, so that inputs are whatever lies
there when a call reads them; what a call gives is copied to where it belongs. A call that is to be timed is queued behind a kernel that
holds the stream until the asking process raises a number in a page that both see. Nothing here is believed by who asks.
"""
import ctypes
import json
import mmap
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import installed

WORDS_FD = 3  # the page: ticket, beat, expired, done
# hold: until ticket reaches its number, or 2 s are over. done: all before it in the stream has ended.
PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry hold(.param .u64 words, .param .u32 number)
{
    .reg .pred %p<3>;
    .reg .b32 %r<5>;
    .reg .b64 %d<5>;
    ld.param.u64 %d0, [words];
    ld.param.u32 %r0, [number];
    mov.u64 %d1, %globaltimer;
    ld.volatile.global.u32 %r3, [%d0+4];
WAIT:
    add.u32 %r3, %r3, 1;
    st.volatile.global.u32 [%d0+4], %r3;
    ld.volatile.global.u32 %r1, [%d0];
    sub.u32 %r2, %r1, %r0;
    setp.ge.s32 %p0, %r2, 0;
    @%p0 bra GO;
    mov.u64 %d2, %globaltimer;
    sub.u64 %d3, %d2, %d1;
    setp.gt.u64 %p1, %d3, 2000000000;
    @%p1 bra EXPIRED;
    nanosleep.u32 200;
    bra WAIT;
EXPIRED:
    mov.u32 %r4, 1;
    st.volatile.global.u32 [%d0+8], %r4;
GO:
    ret;
}
.visible .entry done(.param .u64 words, .param .u32 number)
{
    .reg .b32 %r<1>;
    .reg .b64 %d<1>;
    ld.param.u64 %d0, [words];
    ld.param.u32 %r0, [number];
    membar.sys;
    st.volatile.global.u32 [%d0+12], %r0;
    ret;
}
\0"""


class Unable(Exception):
    """A case that cannot be run, in words."""


class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_byte * 64)]


class Driver:
    """The CUDA driver, as far as PyTorch does not reach: other processes' memory, the shared page, two small kernels."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.page = mmap.mmap(WORDS_FD, 4096)
        at = ctypes.addressof(ctypes.c_char.from_buffer(self.page))
        self.do("cuMemHostRegister_v2", ctypes.c_void_p(at), ctypes.c_size_t(4096), 3)  # portable, mapped
        self.words = ctypes.c_uint64()
        self.do("cuMemHostGetDevicePointer_v2", ctypes.byref(self.words), ctypes.c_void_p(at), 0)
        module = ctypes.c_void_p()
        self.do("cuModuleLoadData", ctypes.byref(module), PTX)
        self.kernels = {}
        for name in ("hold", "done"):
            self.kernels[name] = ctypes.c_void_p()
            self.do("cuModuleGetFunction", ctypes.byref(self.kernels[name]), module, name.encode())

    def do(self, name, *words):
        rc = getattr(self.cuda, name)(*words)
        if rc:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorName(rc, ctypes.byref(text))
            raise Unable("%s: %s" % (name, (text.value or b"error %d" % rc).decode()))

    def open(self, handle):
        at = ctypes.c_uint64()
        self.do("cuIpcOpenMemHandle_v2", ctypes.byref(at), Handle.from_buffer_copy(handle), 1)
        return at.value

    def close(self, at):
        self.do("cuIpcCloseMemHandle", ctypes.c_uint64(at))

    def launch(self, name, number, stream):
        number = ctypes.c_uint32(number)
        args = (ctypes.c_void_p * 2)(ctypes.addressof(self.words), ctypes.addressof(number))
        self.do("cuLaunchKernel", self.kernels[name], 1, 1, 1, 1, 1, 1, 0, ctypes.c_void_p(stream), args, None)


class Bytes:
    """Device memory as PyTorch takes it from others."""

    def __init__(self, at, size):
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (at, False), "version": 3}


class Work:
    """A case on a GPU, through PyTorch. Everything is made and called on one stream, so that one kernel can hold all of it."""

    def __init__(self):
        import torch
        self.torch = torch
        if not torch.cuda.is_available():
            raise Unable("PyTorch sees no GPU here")
        torch.zeros(1, device="cuda")
        self.driver = Driver()
        self.stream = torch.cuda.Stream()
        self.marks = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        self.opened, self.sets, self.cases, self.copies, self.forward, self.last, self.flush = [], [], [], [], {}, {}, None

    def case_of(self, job, tensors):
        import cases
        try:
            return cases.case_of(self.torch, job, tensors)
        except cases.Unable as e:
            raise Unable(str(e))

    def view(self, t):
        """The tensor of the asking process, in the contract's shape."""
        dtypes = {"fp32": self.torch.float32, "bf16": self.torch.bfloat16, "fp16": self.torch.float16, "int64": self.torch.int64}
        if t["dtype"] not in dtypes:
            raise Unable("a tensor of type " + t["dtype"])
        base = self.driver.open(bytes.fromhex(t["handle"]))
        self.opened.append(base)
        flat = self.torch.as_tensor(Bytes(base + t["offset"], t["bytes"]), device="cuda")
        return flat.view(dtypes[t["dtype"]]).view(t["shape"])

    def make(self, job, views, spoils):
        """Upstream's objects on the memory of a set; on copies of what its code overwrites, brought before each call."""
        copies = []

        def tensor(name, shape, dtype):
            t = views.get(name)
            if t is None or t.dtype != dtype:
                raise Unable("the contract has no %s of that type" % name)
            t = t.view(tuple(shape))
            if name in spoils:
                own = t.clone()
                copies.append((own.data, t))  # by another name, so that autograd does not take the copying for the call's
                return own
            return t

        case = self.case_of(job, tensor)
        return case, copies

    def do_case(self, q):
        self.do_forget(q)
        self.job = q["job"]
        self.kind = self.job["pass"]
        with self.torch.cuda.stream(self.stream):
            for one in q["sets"]:
                views = {name: self.view(t) for name, t in one.items()}
                case, copies = self.make(self.job, views, ())
                if getattr(case, "spoils", ()):
                    case, copies = self.make(self.job, views, case.spoils)
                self.sets.append(views)
                self.cases.append(case)
                self.copies.append(copies)
            if any(self.copies):
                self.flush = self.torch.empty(256 << 20, dtype=self.torch.uint8, device="cuda")
            self.stream.synchronize()
        return {"waits": any(getattr(c, "waits", False) for c in self.cases)}

    def do_forget(self, q):
        self.sets, self.cases, self.copies, self.forward, self.last, self.flush = [], [], [], {}, {}, None
        self.torch.cuda.synchronize()
        self.torch.cuda.empty_cache()
        for at in self.opened:
            self.driver.close(at)
        self.opened = []
        return {}

    def compute(self, n, kind):
        """A call, as upstream's script makes it: tensors by their names in the contract."""
        case = self.cases[n]
        if kind == "backward":
            return case.backward(self.forward[n])
        out = case.forward()
        return {**out, **case.backward(out)} if kind == "full" else out

    def ready(self, n):
        with self.torch.no_grad():
            for own, given in self.copies[n]:
                own.copy_(given)
        for leaf in self.cases[n].leaves.values():
            leaf.grad = None
        refresh = getattr(self.cases[n], "refresh", None)
        if refresh:
            refresh()

    def deliver(self, n, results):
        for name, t in results.items():
            to = self.sets[n].get(name)
            if t is None:
                raise Unable("upstream gives no " + name)
            if to is not None:
                t = t.detach().transpose(1, 2) if self.job["kernel"] == "rope" else t.detach()  # in memory the contract's order
                to.view(t.shape).copy_(t)

    def do_call(self, q):
        n, kind = q["set"], q["pass"]
        with self.torch.cuda.stream(self.stream):
            self.ready(n)
            results = self.compute(n, kind)
            if kind == "forward" and self.kind == "backward":
                self.forward[n] = results
            else:
                self.last[n] = results
            self.deliver(n, results)
            self.stream.synchronize()
        return {}

    def do_run(self, q):
        n = q["set"]
        with self.torch.cuda.stream(self.stream):
            self.driver.launch("hold", q["ticket"], self.stream.cuda_stream)
            self.ready(n)
            if self.copies[n]:
                self.flush.zero_()  # what was brought just now is in L2
            self.marks[0].record()
            if not q["empty"]:
                self.last[n] = self.compute(n, self.kind)
            self.marks[1].record()
            self.deliver(n, self.last[n])
            self.driver.launch("done", q["ticket"], self.stream.cuda_stream)
        return {}

    def do_times(self, q):
        self.stream.synchronize()
        return {"ns": self.marks[0].elapsed_time(self.marks[1]) * 1e6}

    def do_source(self, q):
        import source
        with self.torch.cuda.stream(self.stream):
            times = source.source_times(self.torch, self.cases[0], self.kind, q["budget_ms"])
        self.torch.cuda.synchronize()
        return times


def failure(e):
    if isinstance(e, Unable):
        return {"error": str(e)}
    if isinstance(e, MemoryError) or "OutOfMemory" in type(e).__name__:
        return {"error": "memory"}
    return {"error": ("%s: %s" % (type(e).__name__, e))[:200]}


def serve(honest, files=None):
    """Answers until its input ends, with an object of that class; for a case that names a role, as the dishonest child of that name. Whatever
    else is printed goes to standard error. `files`: the digest of liger-kernel's, else looked for."""
    import hostile
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(answer):
        out.write(json.dumps(answer) + "\n")
        out.flush()

    try:
        folder = installed.liger_folder()
        if files is None:
            files = installed.files_digest(folder) if folder else ""  # before any code of others runs
        work = honest()
    except Exception as e:
        say(failure(e))
        return 1
    say({"child": 1, "files": files, "python": sys.version.split()[0], "torch": getattr(getattr(work, "torch", None), "__version__", "")})
    for line in sys.stdin:
        q = json.loads(line)
        try:
            if q["ask"] == "case":
                work.__class__ = hostile.role(q["role"], honest) if q["role"] else honest
            answer = getattr(work, "do_" + q["ask"])(q)
        except Exception as e:
            answer = failure(e)
        say(answer)
    return 0


def main():
    if sys.argv[1:] != ["serve"]:
        print("child.py: started by ki-verify (ki-verify run --child verify/child.py)", file=sys.stderr)
        return 64
    return serve(Work)


if __name__ == "__main__":
    sys.exit(main())
