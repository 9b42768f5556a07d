#!/usr/bin/env python3
"""An honest child without PyTorch and GPU, for tests: rms_norm forward on the host, in memory of the process that asks."""
import mmap
import os
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "verify"))
import child


class Floats:
    """A tensor of fp32 or bf16 as numbers."""

    def __init__(self, memory, dtype):
        self.wide, self.memory = dtype == "fp32", memory.cast("f" if dtype == "fp32" else "H")

    def get(self, first, n):
        raw = self.memory[first:first + n].tolist()
        return raw if self.wide else [struct.unpack("<f", struct.pack("<I", v << 16))[0] for v in raw]

    def put(self, values):
        if self.wide:
            self.memory[:] = memoryview(struct.pack("%df" % len(values), *values)).cast("f")
        else:
            bits = struct.unpack("<%dI" % len(values), struct.pack("<%df" % len(values), *values))
            self.memory[:] = memoryview(struct.pack("%dH" % len(values), *[(v + 0x7fff + (v >> 16 & 1)) >> 16 for v in bits])).cast("H")


class Plain:
    def do_case(self, q):
        spec = q["job"]["workload"]["spec"]
        if q["job"]["kernel"] != "rms_norm" or q["job"]["pass"] != "forward":
            raise child.Unable("only rms_norm forward")
        self.rows, self.hidden, self.eps = spec["axes"]["rows"], spec["axes"]["hidden"], spec["scalars"]["eps"]["value"]
        self.sets = [{name: self.view(t) for name, t in one.items()} for one in q["sets"]]
        return {}

    def do_forget(self, q):
        self.sets = []
        return {}

    @staticmethod
    def view(t):
        with open("/dev/shm" + bytes.fromhex(t["handle"]).split(b"\0")[0].decode(), "r+b") as f:
            whole = mmap.mmap(f.fileno(), 0)
        return Floats(memoryview(whole)[t["offset"]:t["offset"] + t["bytes"]], t["dtype"])

    def compute(self, n, kind):
        one, y = self.sets[n], []
        weight = one["weight"].get(0, self.hidden)
        for r in range(self.rows):
            row = one["x"].get(r * self.hidden, self.hidden)
            scale = (sum(v * v for v in row) / self.hidden + self.eps) ** -0.5
            y.extend(v * scale * w for v, w in zip(row, weight))
        return {"y": y}

    def deliver(self, n, results):
        for name, values in results.items():
            self.sets[n][name].put(values)

    def do_call(self, q):
        self.deliver(q["set"], self.compute(q["set"], q["pass"]))
        return {}


sys.exit(child.serve(Plain, os.environ.get("PLAIN_FILES")))
