"""What upstream's benchmark scripts measure against and define themselves, in plain PyTorch: the same operations of PyTorch in the same
order, because they are what a record's time is of."""
import functools
from types import SimpleNamespace


@functools.lru_cache(None)
def references(torch):
    """The modules, as attributes: classes can be made only once PyTorch is there."""
    nn = torch.nn

    class RMSNorm(nn.Module):
        """Llama's: fp32 inside, rounded to the type of x before the weight, which is fp32 and makes the output fp32."""

        def __init__(self, hidden_size, eps):
            super().__init__()
            self.weight, self.eps = nn.Parameter(torch.ones(hidden_size)), eps

        def forward(self, x):
            wide = x.to(torch.float32)
            wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
            return self.weight * wide.to(x.dtype)

    class AddRMSNorm(RMSNorm):
        def forward(self, x, residual):
            total = x.to(torch.float32) + residual.to(torch.float32)
            wide = total * torch.rsqrt(total.pow(2).mean(-1, keepdim=True) + self.eps)
            return self.weight * wide.to(x.dtype), total.to(x.dtype)

    class DyT(nn.Module):
        def __init__(self, hidden_size, beta):
            super().__init__()
            self.alpha, self.gamma = nn.Parameter(torch.ones(1) * 0.5), nn.Parameter(torch.ones(hidden_size))
            self.beta = nn.Parameter(torch.zeros(hidden_size)) if beta else None

        def forward(self, x):
            y = self.gamma * torch.tanh(x * self.alpha)
            return y if self.beta is None else y + self.beta

    class Sparsemax(nn.Module):
        """By sorting: the largest k with 1 + k x_k above the sum of the k largest gives the threshold."""

        def __init__(self, dim):
            super().__init__()
            self.dim = dim

        def forward(self, x):
            dim = self.dim % x.dim()
            falling, _ = torch.sort(x, dim=dim, descending=True)
            sums = torch.cumsum(falling, dim=dim)
            ranks = torch.arange(1, x.size(dim) + 1, device=x.device, dtype=x.dtype)
            ranks = ranks.view([-1 if d == dim else 1 for d in range(x.dim())])
            support = 1 + ranks * falling > sums
            count = support.sum(dim=dim, keepdim=True).clamp(min=1)
            threshold = ((falling * support).sum(dim=dim, keepdim=True) - 1) / count
            return torch.clamp(x - threshold, min=0)

    class JSD(nn.Module):
        """The logarithm of the mixture is taken twice."""

        def __init__(self, beta):
            super().__init__()
            self.kl, self.beta = nn.KLDivLoss(reduction="none", log_target=True), beta

        def forward(self, student, teacher):
            teacher, student = teacher.to(torch.float), student.to(torch.float)
            teacher, student = teacher.view(-1, teacher.size(-1)), student.view(-1, student.size(-1))
            mixture = torch.lerp(torch.exp(student), torch.exp(teacher), self.beta)
            of_teacher = self.beta * self.kl(torch.log(mixture), teacher).sum(dim=-1)
            of_student = (1 - self.beta) * self.kl(torch.log(mixture), student).sum(dim=-1)
            return ((of_teacher + of_student) / student.shape[0]).sum().to(torch.float)

    class TVDLoss(nn.Module):
        def forward(self, p, q):
            return torch.sum(torch.abs(p - q) / 2.0) / p.size(0)

    class NeighborhoodAttention(nn.Module):
        """Dense attention under a mask that each forward writes element by element."""

        def __init__(self, hidden_size, num_heads, kernel_size, dilation):
            super().__init__()
            self.heads, self.width, self.reach, self.dilation = num_heads, hidden_size // num_heads, kernel_size // 2 * dilation, dilation
            for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
                setattr(self, name, nn.Linear(hidden_size, hidden_size))

        def mask(self, length, device):
            mask = torch.zeros(length, length, device=device, dtype=torch.bool)
            for i in range(length):
                for j in range(max(0, i - self.reach), min(length, i + self.reach + 1)):
                    if self.dilation == 1 or (j - i) % self.dilation == 0:
                        mask[i, j] = True
            return mask

        def forward(self, x):
            batch, length, hidden = x.shape
            q, k, v = (p(x).view(batch, length, self.heads, self.width).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
            scores = torch.matmul(q, k.transpose(-2, -1)) * (1.0 / self.width ** 0.5)
            scores = scores.masked_fill(~self.mask(length, x.device), float("-inf"))
            mixed = torch.matmul(torch.softmax(scores, dim=-1), v)
            return self.out_proj(mixed.transpose(1, 2).contiguous().view(batch, length, hidden))

    return SimpleNamespace(**{c.__name__: c for c in (RMSNorm, AddRMSNorm, DyT, Sparsemax, JSD, TVDLoss, NeighborhoodAttention)})
