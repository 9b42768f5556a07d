"""How upstream's benchmark scripts make their tensors and call each provider: one function an operation, in the names of the operation's
contract (kernels/NAME.cu). Used by capture.py, which notes what a call does on the device, and by child.py, which makes the call for a
parent that owns the memory. Scripts as of Liger-Kernel's drops 0701bab and 08906d3 (June and July 2025). Imports nothing but what the
provider of a job needs: PyTorch is handed in; Liger-Kernel and transformers are imported where the callable is theirs.
"""
import inspect
from dataclasses import dataclass, field

from references import references

DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "int64": "int64"}
PASSES = ("forward", "backward", "full")
FIRST = ("x", "q", "logits", "log_probs", "student_log_probs", "p", "hidden_states", "weight")  # has the float type of the case


class Unable(Exception):
    """A job that upstream's code cannot be called for, in words."""


@dataclass
class Case:
    """One job's tensors and calls. forward() gives outputs and backward(outputs) gradients, by their names in the contract.

    Tensors are dense, in the contract's order in memory; rope's q, k and their gradients are transposed views of [1, seq, heads, width].
    An output or gradient may be of another float type than the contract's, may have no dimension where the contract says [1], and may be
    the memory of an input: copy what is to be kept. The time of backward and full is that of all that upstream's script runs, which may
    be more than what leads to the gradient: losses on distributions go on through the softmax and add to a leaf."""
    inputs: dict              # inputs and parameters
    upstream: dict            # gradients given to backward; empty in a forward pass
    forward: object
    backward: object
    leaves: dict              # their .grad has to be None before a call whose gradients are to be of that call alone
    drops: tuple = ()         # those leaves whose .grad upstream's script drops before each timed call
    parameters: tuple = ()    # names of those inputs that are a module's
    constants: tuple = ()     # tensors that are neither: cos, sin
    waits: bool = False       # the host waits for the device in a timed call, or queues more than the driver takes: do not hold the stream
    spoils: tuple = ()        # names of inputs and upstream gradients that forward or, where the pass has one, backward overwrites
    starts: dict = field(default_factory=dict)  # upstream gradients that always have this value in upstream's script
    refresh: object = None    # brings the caller's values into tensors of upstream's own type: before a call, outside of its time


class Maker:
    """What an adapter makes its case from: the job and where its tensors live. `caller`: case_of's `tensors`."""

    def __init__(self, torch, job, caller, device):
        spec = job["workload"]["spec"]
        self.torch, self.provider, self.kind, self.caller, self.device = torch, job["provider"], job["pass"], caller, device
        self.axes, self.scalars = spec["axes"], {n: s["value"] for n, s in (spec.get("scalars") or {}).items()}
        self.types = {n: getattr(torch, DTYPES[t["dtype"]]) for n, t in spec["tensors"].items() if t["dtype"] in DTYPES}
        self.dtype = next((self.types[n] for n in FIRST if n in self.types), None)
        self.converted = []
        if self.dtype is None:
            raise Unable("no tensor of a known type among " + ", ".join(spec["tensors"]))

    @property
    def liger(self):
        return self.provider == "liger"

    def given(self, name, shape):
        dtype = self.types.get(name, self.dtype)
        tensor = self.caller(name, tuple(shape), dtype)
        if tuple(tensor.shape) != tuple(shape) or tensor.dtype != dtype or not tensor.is_contiguous():
            raise Unable("the memory given for %s is not a dense %s %s" % (name, dtype, tuple(shape)))
        return tensor.detach()

    def tensor(self, name, shape, draw):
        return self.given(name, shape) if self.caller else draw()

    def randn(self, name, shape):
        return self.tensor(name, shape, lambda: self.torch.randn(shape, dtype=self.dtype, device=self.device))

    def gradient(self, name, shape):
        """One that is given to backward; None in a forward pass, which has none."""
        return None if self.kind == "forward" else self.randn(name, shape)

    def indices(self, name, shape, below):
        return self.tensor(name, shape, lambda: self.torch.randint(below, shape, device=self.device))

    def parameters(self, named):
        """Puts parameters of a module into the caller's memory; one of another type than the contract's stays, and is refreshed."""
        for name, parameter in named.items() if self.caller else ():
            memory = self.given(name, parameter.shape)
            if memory.dtype == parameter.dtype:
                parameter.data = memory
            else:
                self.converted.append((parameter.data, memory))
        return named

    def refresh(self):
        for own, memory in self.converted:
            own.copy_(memory)

    def module(self, module, shape, weights=None, name="x", **more):
        """y = module(x); y.backward(dy): the shape of most of upstream's scripts. `weights`: names in the contract and the module's parameters."""
        weights = weights or {}
        x, dy = self.randn(name, shape).requires_grad_(True), self.gradient("dy", shape)
        leaves = {name: x, **self.parameters(weights)}

        def forward():
            return {"y": module(x)}

        def backward(out):
            out["y"].backward(dy, retain_graph=True)
            return {"d" + n: t.grad for n, t in leaves.items()}

        return Case(leaves, {"dy": dy}, forward, backward, leaves, (name,), tuple(weights), **more)

    def loss(self, call, inputs, leaves=None, **more):
        """loss = call(*inputs); loss.backward(dloss), where upstream leaves the 1 to PyTorch. The gradient is that of the first input."""
        (name, x), kept = next(iter(inputs.items())), {}
        one = lambda: self.torch.ones((1,), dtype=self.dtype, device=self.device)
        dloss = None if self.kind == "forward" else self.tensor("dloss", (1,), one)
        leaves = leaves or {}
        if self.kind != "forward" and name not in leaves:  # it adds up in a leaf, as upstream's: look at it on its way there
            x.register_hook(lambda gradient: kept.update(of=gradient))

        def forward():
            return {"loss": call(*inputs.values())}

        def backward(out):
            kept.clear()
            out["loss"].backward(dloss.reshape(()), retain_graph=True)
            return {"d" + name: leaves[name].grad if name in leaves else kept["of"]}

        return Case(inputs, {"dloss": dloss}, forward, backward, leaves, tuple(leaves), starts={"dloss": 1.0}, **more)

    def distributions(self, call, first, second, softmax, other):
        """A loss of two distributions over the vocabulary; upstream's first is not a leaf but the softmax of one, and backward goes that far."""
        shape = (self.axes["tokens"], self.axes["vocab"])
        draw = lambda: self.torch.randn(shape, dtype=self.dtype, device=self.device)
        x = softmax(draw().requires_grad_(True), dim=-1)
        if self.caller:  # in the caller's memory, also for the softmax's own backward, which reads its result
            memory = self.given(first, shape)
            x.grad_fn._raw_saved_result.register_hooks(lambda result: memory, lambda result: result)
            x.data = memory
        y = self.tensor(second, shape, lambda: other(draw(), dim=-1))
        return self.loss(call, {first: x, second: y}, waits=self.liger and self.kind != "forward")  # Liger compares dloss with 1 on the host


# ---- operations ----

def softmax(m):
    if m.liger:
        from liger_kernel.transformers.softmax import LigerSoftmax as Softmax
    else:
        def Softmax():
            return m.torch.nn.Softmax(dim=-1)
    return m.module(Softmax(), (m.axes["rows"], m.axes["hidden"]))


def sparsemax(m):
    if m.liger:
        from liger_kernel.transformers.sparsemax import LigerSparsemax as Sparsemax
    else:
        Sparsemax = references(m.torch).Sparsemax
    return m.module(Sparsemax(dim=-1), (m.axes["tokens"], m.axes["features"]))


def rms_norm(m):
    if m.liger:
        from liger_kernel.transformers.rms_norm import LigerRMSNorm as RMSNorm
    else:
        RMSNorm = references(m.torch).RMSNorm
    module = RMSNorm(m.axes["hidden"], eps=m.scalars["eps"]).to(m.device)
    return m.module(module, (m.axes["rows"], m.axes["hidden"]), {"weight": module.weight},
                    spoils=("dy",) if m.liger and m.kind != "forward" else ())


def fused_add_rms_norm(m):
    if m.provider == "liger_fused_add_rms_norm":
        from liger_kernel.transformers.fused_add_rms_norm import LigerFusedAddRMSNorm as AddRMSNorm
    else:
        AddRMSNorm = references(m.torch).AddRMSNorm
    torch, shape = m.torch, (m.axes["rows"], m.axes["hidden"])
    module = AddRMSNorm(m.axes["hidden"], eps=m.scalars["eps"]).to(m.device)
    x, residual = (m.randn(n, shape).requires_grad_(True) for n in ("x", "residual"))
    dy, dresidual_out = m.gradient("dy", shape), m.gradient("dresidual_out", shape)
    leaves = {"x": x, "residual": residual, **m.parameters({"weight": module.weight})}

    def forward():
        y, residual_out = module(x, residual)
        return {"y": y, "residual_out": residual_out}

    def backward(out):
        torch.autograd.backward((out["y"], out["residual_out"]), (dy, dresidual_out), retain_graph=True)
        return {"dx": x.grad, "dweight": module.weight.grad}

    return Case(leaves, {"dy": dy, "dresidual_out": dresidual_out}, forward, backward, leaves, ("x", "residual"), ("weight",))


def layer_norm(m):
    if m.liger:
        from liger_kernel.transformers.layer_norm import LigerLayerNorm as LayerNorm
    else:
        LayerNorm = m.torch.nn.LayerNorm
    module = LayerNorm(m.axes["hidden"], eps=m.scalars["eps"]).to(m.device)
    return m.module(module, (m.axes["rows"], m.axes["hidden"]), {"weight": module.weight, "bias": module.bias})


def group_norm(m):
    if m.liger:
        from liger_kernel.transformers.group_norm import LigerGroupNorm as GroupNorm
    else:
        GroupNorm = m.torch.nn.GroupNorm
    a = m.axes
    module = GroupNorm(num_channels=a["channels"], num_groups=a["channels"] // a["channels_per_group"], eps=m.scalars["eps"]).to(m.device)
    return m.module(module, (a["batch"], a["channels"], a["hidden"]), {"weight": module.weight, "bias": module.bias})


def dyt(m, beta=True):
    if m.liger:
        from liger_kernel.transformers.dyt import LigerDyT as DyT
    else:
        DyT = references(m.torch).DyT
    module = DyT(hidden_size=m.axes["hidden"], beta=beta).to(m.device)
    weights = {n: getattr(module, n) for n in ("alpha", "gamma", "beta")[:2 + beta]}
    call = m.torch.compile(module) if m.provider == "torch_compile" else module
    return m.module(call, (m.axes["rows"], m.axes["hidden"]), weights)


def dyt_no_beta(m):
    return dyt(m, beta=False)


def rope(m):
    torch, a, width = m.torch, m.axes, m.axes["hidden"] // m.axes["q_heads"]
    if m.liger:
        from liger_kernel.transformers.rope import liger_rotary_pos_emb as rotate
    else:
        from transformers.models.llama.modeling_llama import apply_rotary_pos_emb as rotate
    shapes = [(1, a["seq"], a[heads], width) for heads in ("q_heads", "kv_heads")]
    q, k = (m.randn(n, s).requires_grad_(True).transpose(1, 2) for n, s in zip(("q", "k"), shapes))
    upstream = {n: m.randn(n, s).transpose(1, 2) for n, s in zip(("dq_out", "dk_out"), shapes) if m.kind != "forward"}
    # What transformers' LlamaRotaryEmbedding gives for these positions and width.
    steps = torch.arange(a["seq"], device=m.device, dtype=torch.long)
    inverse = 1.0 / (m.scalars.get("theta", 10000.0) ** (torch.arange(0, width, 2, device=m.device, dtype=torch.float32) / width))
    angles = torch.outer(steps.float(), inverse)
    angles = torch.cat((angles, angles), dim=-1).unsqueeze(0)
    cos, sin = angles.cos().to(m.dtype), angles.sin().to(m.dtype)
    positions = (steps.unsqueeze(0),) if "position_ids" in inspect.signature(rotate).parameters else ()  # transformers 5 takes none

    def forward():
        out = rotate(q, k, cos, sin, *positions)
        return {"q_out": out[0], "k_out": out[1]}

    def backward(out):
        grads = torch.autograd.grad((out["q_out"], out["k_out"]), (q, k), tuple(upstream.values()), allow_unused=True, retain_graph=True)
        return {"dq": grads[0], "dk": grads[1]}

    return Case({"q": q, "k": k}, upstream, forward, backward, {}, constants=(cos, sin),
                spoils=(("q", "k") if m.kind == "forward" else ("q", "k", "dq_out", "dk_out")) if m.liger else ())


def embedding(m):
    """Upstream draws dy inside the timed call; here it is the one that is given."""
    if m.liger:
        from liger_kernel.transformers.experimental.embedding import LigerEmbedding as Embedding
    else:
        Embedding = m.torch.nn.Embedding
    a, module = m.axes, Embedding(m.axes["vocab"], m.axes["hidden"]).to(m.device).to(m.dtype)
    call = m.torch.compile(module) if m.provider == "torch_compile" else module
    ids, dy = m.indices("input_ids", (a["batch"], a["seq"]), a["vocab"]), m.gradient("dy", (a["batch"], a["seq"], a["hidden"]))
    leaves = m.parameters({"weight": module.weight})

    def forward():
        return {"y": call(ids)}

    def backward(out):
        out["y"].backward(dy, retain_graph=True)
        return {"dweight": module.weight.grad}

    return Case({"input_ids": ids, **leaves}, {"dy": dy}, forward, backward, leaves, (), ("weight",))


def cross_entropy(m):
    if m.liger:
        from liger_kernel.transformers.cross_entropy import LigerCrossEntropyLoss as CrossEntropyLoss
    else:
        CrossEntropyLoss = m.torch.nn.CrossEntropyLoss
    tokens, vocab = m.axes["tokens"], m.axes["vocab"]
    logits = m.randn("logits", (tokens, vocab)).requires_grad_(True)
    # Upstream drops the gradient between calls of the backward pass only. Liger counts targets on the host and keeps the gradient in the logits.
    return m.loss(CrossEntropyLoss(), {"logits": logits, "target": m.indices("target", (tokens,), vocab)},
                  {"logits": logits} if m.kind == "backward" else {}, waits=m.liger, spoils=("logits",) if m.liger else ())


def kl_div(m):
    if m.liger:
        from liger_kernel.transformers.kl_div import LigerKLDIVLoss as KLDivLoss
    else:
        KLDivLoss = m.torch.nn.KLDivLoss
    return m.distributions(KLDivLoss(reduction="batchmean"), "log_probs", "target_probs", m.torch.log_softmax, m.torch.softmax)


def jsd(m):
    if m.liger:
        from liger_kernel.transformers.jsd import LigerJSD as JSD
    else:
        JSD = references(m.torch).JSD
    return m.distributions(JSD(beta=m.scalars.get("beta", 0.5)), "student_log_probs", "teacher_log_probs", m.torch.log_softmax, m.torch.log_softmax)


def tvd(m):
    if m.liger:
        from liger_kernel.transformers.tvd import LigerTVDLoss as TVDLoss
    else:
        TVDLoss = references(m.torch).TVDLoss
    return m.distributions(TVDLoss(), "p", "q", m.torch.softmax, m.torch.softmax)


def fused_neighborhood_attention(m):
    if m.liger:
        from liger_kernel.transformers.fused_neighborhood_attention import LigerFusedNeighborhoodAttention as Attention
    else:
        Attention = references(m.torch).NeighborhoodAttention
    a = m.axes
    module = Attention(hidden_size=a["hidden"], num_heads=a["heads"], kernel_size=a["kernel_size"], dilation=a["dilation"])
    module = module.to(m.device).to(m.dtype)
    weights = {"%s_%s" % (n, of): getattr(getattr(module, n + "_proj"), of) for of in ("weight", "bias") for n in ("q", "k", "v", "out")}
    # PyTorch's makes its mask by one write an element from the host: thousands of launches.
    return m.module(module, (a["batch"], a["seq"], a["hidden"]), weights, name="hidden_states", waits=not m.liger and m.kind != "backward")


ADAPTERS = {
    softmax: ("liger", "torch"),
    sparsemax: ("liger", "torch"),
    rms_norm: ("liger", "huggingface"),
    fused_add_rms_norm: ("liger_fused_add_rms_norm", "huggingface"),
    layer_norm: ("liger", "huggingface"),
    group_norm: ("liger", "huggingface"),
    dyt: ("liger", "torch", "torch_compile"),
    dyt_no_beta: ("liger", "torch", "torch_compile"),
    rope: ("liger", "huggingface"),
    embedding: ("liger", "huggingface", "torch_compile"),
    cross_entropy: ("liger", "huggingface"),
    kl_div: ("liger", "torch"),
    jsd: ("liger", "torch"),
    tvd: ("liger", "torch"),
    fused_neighborhood_attention: ("liger", "torch"),
}
BY_NAME = {(adapter.__name__, provider): adapter for adapter, providers in ADAPTERS.items() for provider in providers}


def case_of(torch, job, tensors=None, device="cuda"):
    """The Case of a job. `tensors(name, shape, dtype)`, when given, returns a dense tensor whose memory becomes that of the contract's tensor of
    that name; `shape` is its order in memory (rope: [1, seq, heads, width]), `dtype` the contract's. Without it values are drawn. Raises Unable."""
    adapter = BY_NAME.get((job["kernel"], job["provider"]))
    if not adapter:
        raise Unable("no adapter for %s of %s" % (job["kernel"], job["provider"]))
    if job["pass"] not in PASSES:
        raise Unable("no pass %s in upstream's scripts" % job["pass"])
    torch.manual_seed(1)
    maker = Maker(torch, job, tensors, device)
    case = adapter(maker)
    case.upstream = {n: t for n, t in case.upstream.items() if t is not None}
    if maker.converted:
        case.refresh = torch.no_grad()(maker.refresh)
        case.refresh()
    return case
