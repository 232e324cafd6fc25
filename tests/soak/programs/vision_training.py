"""A vision model trained as timm does it: EMA, mixup, stochastic depth, autograd functions."""

import copy
import warnings

warnings.simplefilter("ignore")

import torch  # noqa: E402
from state import digest, exact, report  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.nn.utils import parametrizations, prune  # noqa: E402
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, update_bn  # noqa: E402

torch.manual_seed(21)


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(context, x, levels):
        context.levels = levels
        return (x * levels).round() / levels

    @staticmethod
    def backward(context, gradient):
        return gradient.clamp(-1 / context.levels, context.levels), None


class DropPath(nn.Module):
    def __init__(self, chance):
        super().__init__()
        self.chance = chance

    def forward(self, x):
        if not self.training or self.chance == 0:
            return x
        keep = x.new_empty(x.shape[0], *[1] * (x.ndim - 1)).bernoulli_(1 - self.chance)
        return x * keep.div_(1 - self.chance)


class Block(nn.Module):
    def __init__(self, width, chance):
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 3, padding=1, groups=width)
        self.norm = nn.GroupNorm(1, width)
        self.mix = nn.Sequential(
            nn.Conv2d(width, 2 * width, 1), nn.GELU(), nn.Conv2d(2 * width, width, 1)
        )
        self.scale = nn.Parameter(torch.full((width, 1, 1), 1e-2))
        self.drop = DropPath(chance)

    def forward(self, x):
        h = self.mix(self.norm(self.depthwise(x)))
        return x + self.drop(h * self.scale)


class Vision(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 2, 2), nn.BatchNorm2d(8))
        self.blocks = nn.ModuleDict({f"b{it}": Block(8, it * 0.2) for it in range(3)})
        self.head = parametrizations.spectral_norm(nn.Linear(8, classes))

    @property
    def device(self):
        return next(self.parameters()).device

    def features(self, x):
        x = self.stem(x)
        for block in self.blocks.values():
            x = block(x)
        return x

    def forward(self, x, *, pooled=True):
        x = self.features(Rounded.apply(x, 16))
        return self.head(x.mean((-2, -1))) if pooled else x


model = Vision().to(memory_format=torch.channels_last)
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=True)
kept = {}
handles = [
    model.stem[1].register_forward_pre_hook(lambda module, given: (given[0] * 1.0,)),
    model.blocks["b1"].register_full_backward_hook(
        lambda module, into, out: kept.update(norm=exact(out[0].norm().item()))
    ),
]
groups = [
    {"params": [it for it in model.parameters() if it.ndim > 1], "weight_decay": 0.05},
    {"params": [it for it in model.parameters() if it.ndim <= 1], "weight_decay": 0.0},
]
optimizer = torch.optim.AdamW(groups, lr=5e-3)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=8)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
losses = []
for step in range(8):
    images, labels = torch.randn(6, 3, 12, 12), torch.randint(0, 4, (6,))
    part = torch.distributions.Beta(0.8, 0.8).sample().item()
    mixed = images.lerp(images.flip(0), part).contiguous(memory_format=torch.channels_last)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=step % 2 == 0):
        logits = model(mixed)
        loss = part * F.cross_entropy(logits, labels) + (1 - part) * F.cross_entropy(
            logits, labels.flip(0), label_smoothing=0.1
        )
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    losses.append(exact(nn.utils.clip_grad_norm_(model.parameters(), 1.0).item()))
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=step % 3 == 0)
    schedule.step()
    average.update_parameters(model)
    losses.append(exact(loss.item()))
for handle in handles:
    handle.remove()
update_bn([torch.randn(4, 3, 12, 12) for _ in range(2)], average)
student = copy.deepcopy(model).to(memory_format=torch.contiguous_format).eval()
prune.l1_unstructured(student.stem[0], "weight", 0.3)
scripted = torch.jit.trace(student, torch.ones(1, 3, 12, 12))
refined = torch.optim.LBFGS(student.head.parameters(), max_iter=4)
inputs, targets = torch.randn(5, 3, 12, 12), torch.randint(0, 4, (5,))


def closure():
    refined.zero_grad()
    loss = F.cross_entropy(student(inputs), targets)
    loss.backward()
    return loss


losses.append(exact(refined.step(closure).item()))
hessian = torch.autograd.functional.hessian(
    lambda x: model.eval()(x).logsumexp(1).sum(), inputs[:1]
)
with torch.no_grad():
    outputs = [average(inputs), scripted(inputs), student(inputs, pooled=False), hessian]
report(
    model, losses=losses, kept=kept, outputs=digest(outputs), average=digest(average.parameters())
)
