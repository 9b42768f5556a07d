"""Dishonest children: the negative controls of the child runner. ki-verify asks for each in every batch that uses a child, and has to refuse
it. Each is an honest child of one case, rms_norm forward, with one thing done wrong."""
import os
import time


class Rms:
    """y = x / sqrt(mean(x^2) + eps) * weight by PyTorch, on the memory that is given."""

    def __init__(self, torch, job, tensors):
        spec = job["workload"]["spec"]
        rows, hidden = spec["axes"]["rows"], spec["axes"]["hidden"]
        self.torch, self.eps = torch, spec["scalars"]["eps"]["value"]
        self.x = tensors("x", (rows, hidden), torch.float32)
        self.weight = tensors("weight", (hidden,), torch.float32)
        self.leaves = {}

    def forward(self):
        return {"y": self.x * self.torch.rsqrt((self.x * self.x).mean(-1, keepdim=True) + self.eps) * self.weight}


class Honest:
    """What the others are made of."""

    calls, kept, early, old = 0, None, None, None

    def do_case(self, q):
        self.calls, self.kept, self.early, self.old = 0, None, None, None
        return super().do_case(q)

    def case_of(self, job, tensors):
        return Rms(self.torch, job, tensors) if hasattr(self, "torch") else super().case_of(job, tensors)


class Forged(Honest):
    """Says that it is done, and how fast."""

    def do_call(self, q):
        return {}

    def deliver(self, n, results):
        pass

    def compute(self, n, kind):
        return {}

    def do_times(self, q):
        return {"ns": 1000.0}


class Timer(Honest):
    """Has its clock say half."""

    def do_times(self, q):
        return {"ns": super().do_times(q)["ns"] / 2}


class Cached(Honest):
    """Gives the first answer for good."""

    def compute(self, n, kind):
        self.kept = self.kept or super().compute(n, kind)
        return self.kept


class SideStream(Honest):
    """Works on another stream, where nothing holds it, and nobody waits for that one."""

    def do_case(self, q):
        self.side = self.torch.cuda.Stream()
        return super().do_case(q)

    def do_run(self, q):
        if not q["empty"]:
            with self.torch.cuda.stream(self.side):
                self.early = super().compute(q["set"], self.kind)
        return super().do_run(q)

    def compute(self, n, kind):
        early, self.early = self.early, None
        return early or super().compute(n, kind)


class Stale(Honest):
    """Delivers memory as it was before."""

    def compute(self, n, kind):
        self.calls += 1
        if self.calls < 2:
            self.old = super().compute(n, kind)
            return self.old
        return self.blank(self.old)

    def blank(self, results):
        return {name: self.torch.empty_like(t) for name, t in results.items()} if hasattr(self, "torch") else results


class Late(Honest):
    """Something happens in the third call."""

    def compute(self, n, kind):
        self.calls += 1
        if self.calls == 3:
            self.happens()
        return super().compute(n, kind)


class Killed(Late):
    def happens(self):
        os.kill(os.getpid(), 9)


class Hung(Late):
    def happens(self):
        time.sleep(3600)


ROLES = {"child_forged": Forged, "child_timer": Timer, "child_cached": Cached, "child_side_stream": SideStream, "child_stale": Stale,
         "child_killed": Killed, "child_hung": Hung}


def role(name, honest):
    """The role on top of an honest child's class."""
    return type(name, (ROLES[name], honest), {})
