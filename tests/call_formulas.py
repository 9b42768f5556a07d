"""Each adapter of verify/cases.py that is PyTorch's or transformers', on the CPU and in memory of the caller, against formulas in fp64.
Speaks TAP; needs PyTorch. Run by tests/calls.t."""
import importlib.util
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "verify"))
import cases  # noqa: E402

COUNT = 0
BF16, F32, I64 = torch.bfloat16, torch.float32, torch.int64


def ok(holds, words):
    global COUNT
    COUNT += 1
    print("%s %d - %s" % ("ok" if holds else "not ok", COUNT, words))


def group_norm(t, a, eps):
    x = t["x"].view(a["batch"], a["channels"] // a["channels_per_group"], -1)
    x = (x - x.mean(-1, keepdim=True)) / (x.var(-1, unbiased=False, keepdim=True) + eps).sqrt()
    return {"y": x.view_as(t["x"]) * t["weight"][:, None] + t["bias"][:, None]}


def sparsemax(t, a):
    low, high = t["x"].max(-1, keepdim=True)[0] - 1, t["x"].max(-1, keepdim=True)[0]
    for _ in range(80):
        middle = (low + high) / 2
        enough = (t["x"] - middle).clamp(min=0).sum(-1, keepdim=True) >= 1
        low, high = torch.where(enough, middle, low), torch.where(enough, high, middle)
    support = (t["x"] > low).detach().double()
    threshold = ((t["x"] * support).sum(-1, keepdim=True) - 1) / support.sum(-1, keepdim=True)
    return {"y": (t["x"] - threshold) * support}


def rotated(x, a):
    half = x.shape[-1] // 2
    angle = torch.arange(a["seq"], dtype=torch.double)[:, None] * 10000.0 ** (-torch.arange(half, dtype=torch.double) / half)
    turn = torch.polar(torch.ones_like(angle), angle)[None, :, None, :]
    out = torch.complex(x[..., :half], x[..., half:]) * turn
    return torch.cat((out.real, out.imag), -1)


def attention(t, a):
    x, width = t["hidden_states"], a["hidden"] // a["heads"]
    q, k, v = (x @ t[n + "_weight"].T + t[n + "_bias"] for n in "qkv")
    rows = []
    for i in range(a["seq"]):
        near = [j for j in range(a["seq"]) if abs(j - i) <= a["kernel_size"] // 2 * a["dilation"] and (j - i) % a["dilation"] == 0]
        heads = [slice(h * width, (h + 1) * width) for h in range(a["heads"])]
        rows.append(torch.cat([torch.softmax((q[:, i:i + 1, h] * k[:, near, h]).sum(-1) / width ** 0.5, -1).unsqueeze(1) @ v[:, near, h]
                               for h in heads], -1))
    return {"y": torch.cat(rows, 1) @ t["out_weight"].T + t["out_bias"]}


def jsd(t, a):
    x, y = t["student_log_probs"], t["teacher_log_probs"]
    m = (0.5 * x.exp() + 0.5 * y.exp()).log()
    return {"loss": (0.5 * y.exp() * (y - m) + 0.5 * x.exp() * (x - m)).sum() / a["tokens"]}


def rms(x, w, eps):
    return x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt() * w


def add_rms_norm(t, a, eps):
    total = t["x"] + t["residual"]
    return {"y": rms(total, t["weight"], eps), "residual_out": total}


def layer_norm(t, a, eps):
    x = t["x"] - t["x"].mean(-1, keepdim=True)
    return {"y": x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt() * t["weight"] + t["bias"]}


def cross_entropy(t, a):
    x = t["logits"]
    return {"loss": (x.exp().sum(-1).log() - x[torch.arange(a["tokens"]), t["target"]]).mean()}


ROWS, PAIRS, HEADS = {"rows": 5, "hidden": 8}, {"tokens": 4, "vocab": 11}, {"seq": 6, "hidden": 24, "q_heads": 4, "kv_heads": 2}
NEAR = {"batch": 2, "seq": 7, "hidden": 8, "heads": 2, "kernel_size": 3, "dilation": 2}
NEAR_TENSORS = {"hidden_states": (2, 7, 8), **{n + "_weight": (8, 8) for n in ("q", "k", "v", "out")}, **{n + "_bias": (8,) for n in ("q", "k", "v", "out")}}
LOG = ("log_probs", "student_log_probs", "teacher_log_probs")

# kernel, providers, axes, scalars, types of the contract, formula, upstream gradients, gradients; shapes are those in memory
TABLE = [
    ("softmax", ("torch",), ROWS, {}, {"x": (BF16, (5, 8))}, lambda t, a: {"y": t["x"].exp() / t["x"].exp().sum(-1, keepdim=True)},
     {"dy": (5, 8)}, {"dx": "x"}),
    ("sparsemax", ("torch",), {"tokens": 5, "features": 9}, {}, {"x": (F32, (5, 9))}, sparsemax, {"dy": (5, 9)}, {"dx": "x"}),
    ("rms_norm", ("huggingface",), ROWS, {"eps": 1e-6}, {"x": (BF16, (5, 8)), "weight": (BF16, (8,))},
     lambda t, a, eps: {"y": rms(t["x"], t["weight"], eps)}, {"dy": (5, 8)}, {"dx": "x", "dweight": "weight"}),
    ("fused_add_rms_norm", ("huggingface",), ROWS, {"eps": 1e-6}, {"x": (F32, (5, 8)), "residual": (F32, (5, 8)), "weight": (F32, (8,))},
     add_rms_norm, {"dy": (5, 8), "dresidual_out": (5, 8)}, {"dx": "x", "dweight": "weight"}),
    ("layer_norm", ("huggingface",), ROWS, {"eps": 1e-6}, {"x": (F32, (5, 8)), "weight": (F32, (8,)), "bias": (F32, (8,))}, layer_norm,
     {"dy": (5, 8)}, {"dx": "x", "dweight": "weight", "dbias": "bias"}),
    ("group_norm", ("huggingface",), {"batch": 3, "channels": 8, "channels_per_group": 4, "hidden": 5}, {"eps": 1e-6},
     {"x": (F32, (3, 8, 5)), "weight": (F32, (8,)), "bias": (F32, (8,))}, group_norm, {"dy": (3, 8, 5)}, {"dx": "x", "dweight": "weight", "dbias": "bias"}),
    ("dyt", ("torch",), ROWS, {}, {"x": (BF16, (5, 8)), "alpha": (F32, (1,)), "gamma": (F32, (8,)), "beta": (F32, (8,))},
     lambda t, a: {"y": t["gamma"] * (t["alpha"] * t["x"]).tanh() + t["beta"]}, {"dy": (5, 8)},
     {"dx": "x", "dalpha": "alpha", "dgamma": "gamma", "dbeta": "beta"}),
    ("dyt_no_beta", ("torch",), ROWS, {}, {"x": (BF16, (5, 8)), "alpha": (F32, (1,)), "gamma": (F32, (8,))},
     lambda t, a: {"y": t["gamma"] * (t["alpha"] * t["x"]).tanh()}, {"dy": (5, 8)}, {"dx": "x", "dalpha": "alpha", "dgamma": "gamma"}),
    ("rope", ("huggingface",), HEADS, {}, {"q": (F32, (1, 6, 4, 6)), "k": (F32, (1, 6, 2, 6))},
     lambda t, a: {"q_out": rotated(t["q"], a), "k_out": rotated(t["k"], a)}, {"dq_out": (1, 6, 4, 6), "dk_out": (1, 6, 2, 6)}, {"dq": "q", "dk": "k"}),
    ("embedding", ("huggingface",), {"batch": 2, "seq": 3, "vocab": 7, "hidden": 4}, {}, {"input_ids": (I64, (2, 3)), "weight": (F32, (7, 4))},
     lambda t, a: {"y": torch.nn.functional.one_hot(t["input_ids"], 7).double() @ t["weight"]}, {"dy": (2, 3, 4)}, {"dweight": "weight"}),
    ("cross_entropy", ("huggingface",), PAIRS, {}, {"logits": (F32, (4, 11)), "target": (I64, (4,))}, cross_entropy, {"dloss": (1,)}, {"dlogits": "logits"}),
    ("kl_div", ("torch",), PAIRS, {}, {"log_probs": (F32, (4, 11)), "target_probs": (F32, (4, 11))},
     lambda t, a: {"loss": (t["target_probs"] * (t["target_probs"].log() - t["log_probs"])).sum() / 4}, {"dloss": (1,)}, {"dlog_probs": "log_probs"}),
    ("jsd", ("torch",), PAIRS, {}, {"student_log_probs": (F32, (4, 11)), "teacher_log_probs": (F32, (4, 11))}, jsd, {"dloss": (1,)},
     {"dstudent_log_probs": "student_log_probs"}),
    ("tvd", ("torch",), PAIRS, {}, {"p": (F32, (4, 11)), "q": (F32, (4, 11))}, lambda t, a: {"loss": (t["p"] - t["q"]).abs().sum() / 2 / 4},
     {"dloss": (1,)}, {"dp": "p"}),
    ("fused_neighborhood_attention", ("torch",), NEAR, {}, {n: (F32, s) for n, s in NEAR_TENSORS.items()}, attention, {"dy": (2, 7, 8)},
     {"d" + n: n for n in NEAR_TENSORS}),
]
NAMES = {BF16: "bf16", F32: "fp32", I64: "int64"}


class Memory:
    """What a parent would own: a tensor for each that is asked for, drawn anew on demand."""

    def __init__(self, kernel, vocab):
        self.kernel, self.vocab, self.of = kernel, vocab, {}

    def __call__(self, name, shape, dtype):
        self.of[name] = torch.empty(shape, dtype=dtype)
        self.draw(name)
        return self.of[name]

    def draw(self, name):
        t = self.of[name]
        values = torch.randint(self.vocab, t.shape) if t.dtype == I64 else torch.randn(t.shape)
        if name in LOG:
            values = values.log_softmax(-1)
        elif self.kernel in ("kl_div", "tvd") and not name.startswith("d"):
            values = values.softmax(-1)
        t.copy_(values)


def expected(memory, axes, scalars, formula, upstream, gradients):
    t = {n: v if v.dtype == I64 else v.double().requires_grad_(True) for n, v in memory.of.items()}
    out = formula(t, axes, **scalars)
    if not all(n in t for n in upstream):
        return out
    grads = torch.autograd.grad([o.sum() if o.dim() == 0 else o for o in out.values()],
                                [t[n] for n in gradients.values()], [t[n].reshape(o.shape) for n, o in zip(upstream, out.values())])
    return {**out, **dict(zip(gradients, grads))}


def close(got, want, loose, transposed):
    got = got.detach().double()
    got = (got.transpose(1, 2) if transposed else got).reshape(want.shape)
    return torch.allclose(got, want.detach(), atol=4e-2 if loose else 2e-5, rtol=4e-2 if loose else 2e-4)


def check(kernel, provider, kind, axes, scalars, types, formula, upstream, gradients):
    words = "%s %s %s" % (provider, kernel, kind)
    spec = {"axes": axes, "scalars": {n: {"value": v} for n, v in scalars.items()},
            "tensors": {n: {"dtype": NAMES[d], "shape": s} for n, (d, s) in types.items()}}
    first = next(t for t in types.values() if t[0] != I64)
    memory = Memory(kernel, axes.get("vocab", 2))
    job = {"kernel": kernel, "provider": provider, "pass": kind, "workload": {"spec": spec}}
    case = cases.case_of(torch, job, memory, "cpu")
    loose = any(d == BF16 for d, _ in types.values())
    ok(set(memory.of) == {*types, *(upstream if kind != "forward" else ())} == {*case.inputs, *case.upstream}, words + ": asks for the contract's tensors, and has no other")
    shapes = {**{n: s for n, (_, s) in types.items()}, **upstream}
    ok(all(tuple(t.shape) == shapes[n] and t.dtype == types.get(n, first)[0] for n, t in memory.of.items()), words + ": in its shapes and types")
    other = set(case.parameters) if case.refresh else set()
    ok(all(t.data_ptr() == memory.of[n].data_ptr() for n, t in {**case.inputs, **case.upstream}.items() if n not in other),
       words + ": its tensors are the caller's memory")
    before = None
    for turn in ("first values", "values written later"):
        for name in memory.of:
            memory.draw(name)
        if case.refresh:
            case.refresh()
        for leaf in case.leaves.values():
            leaf.grad = None
        want = expected(memory, axes, scalars, formula, upstream, gradients)
        given = {n: t.clone() for n, t in memory.of.items()}
        out = case.forward()
        grads = case.backward(out) if kind != "forward" else {}
        got = {**out, **grads}
        wrong = [n for n, t in got.items() if not close(t, want[n], loose, kernel == "rope")]
        ok(not wrong and set(grads) == (set(gradients) if grads else set()), words + ": %s give what the formula gives%s" % (turn, wrong or ""))
        spoiled = {n for n, t in memory.of.items() if not torch.equal(t, given[n])}
        ok(spoiled <= set(case.spoils), words + ": overwrites nothing but what it says")
        ok(before is None or all(not torch.equal(t, before[n]) for n, t in got.items()), words + ": %s differ" % turn)
        before = {n: t.detach().clone() for n, t in got.items()}
    return case, memory, grads


def accumulates(kernel, provider, *row):
    """The leaf behind a distribution gets what the softmax's backward makes of the caller's values, added up as in upstream's loop."""
    case, memory, grads = check(kernel, provider, "full", *row)
    first = next(iter(case.inputs))
    leaf = case.inputs[first].grad_fn.next_functions[0][0].variable
    g, p = next(iter(grads.values())), memory.of[first]
    leaf.grad = None
    case.backward(case.forward())
    case.backward(case.forward())
    one = g - p.exp() * g.sum(-1, keepdim=True) if first in LOG else p * (g - (p * g).sum(-1, keepdim=True))
    ok(torch.allclose(leaf.grad, 2 * one, atol=1e-5), "%s %s: the gradient goes on through the softmax into a leaf and adds up there" % (provider, kernel))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    transformers = importlib.util.find_spec("transformers")
    for kernel, providers, *row in TABLE:
        for provider in providers:
            if kernel == "rope" and not transformers:
                ok(True, "rope # SKIP no transformers here")
                continue
            for kind in ("forward", "backward") if kernel in ("kl_div", "jsd", "tvd") else cases.PASSES:
                check(kernel, provider, kind, *row)
            if kernel in ("kl_div", "jsd", "tvd"):
                accumulates(kernel, provider, *row)
    known = {(a.__name__, p) for a, ps in cases.ADAPTERS.items() for p in ps if not p.startswith("liger") and p != "torch_compile"}
    ok(known == {(k, p) for k, ps, *_ in TABLE for p in ps}, "no adapter goes unchecked but Liger's and compiled ones")
    print("1..%d" % COUNT)


main()
