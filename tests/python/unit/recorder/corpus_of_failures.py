"""Programs that end with an exception."""

from __future__ import annotations

NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 3)
        self.rest = nn.Sequential(nn.ReLU(), nn.Linear(5, 2))

    def forward(self, x):
        return self.rest(self.first(x))

net = Net()
x = torch.ones(2, 4)
"""

FAILING = {
    "operator": "def main(): return x @ x",
    "function in C": "def main(): return torch.cat([x, x[0]])",
    "method": "def main(): return x.view(3, 3)",
    "index": "def main(): return x[7]",
    "in place": "def main(): x.add_(torch.ones(3, 3))",
    "attribute": "def main(): return x.is_nothing",
    "module": "def main(): return net(x)",
    "python function in a module": """
class Padding(nn.Module):
    def forward(self, x):
        return F.pad(x, (9, 9), mode="reflect")

def main():
    return nn.Sequential(nn.Identity(), Padding())(x)
""",
    "function chosen by a flag in a module": """
def main():
    return nn.MaxPool2d(9)(x)
""",
    "python method in a module": """
class Splitting(nn.Module):
    def forward(self, x):
        return x.split([1, 7], dim=1)

def main():
    return Splitting()(x)
""",
    "einsum in a module": """
class Summing(nn.Module):
    def forward(self, x):
        return torch.einsum("ij,jk->ik", x, x)

def main():
    return Summing()(x)
""",
    "raised from another": """
class Caught(nn.Module):
    def forward(self, x):
        try:
            return net(x)
        except RuntimeError as error:
            raise ValueError("the inner net does not fit") from error

def main():
    return nn.Sequential(Caught())(x)
""",
    "raised while handling another": """
def main():
    try:
        net(x)
    except RuntimeError:
        return x @ x
""",
    "raised again by hand": """
def main():
    try:
        net(x)
    except RuntimeError as error:
        saved = error
    raise saved
""",
    "group of several": """
def main():
    errors = []
    for value in (x, x[0]):
        try:
            net(value)
            value @ value @ value
        except RuntimeError as error:
            errors.append(error)
    raise ExceptionGroup("both", errors)
""",
    "in a generator": """
def steps():
    yield x @ x.T
    yield net(x)

def main():
    return [step.sum() for step in steps()]
""",
    "thrown into a generator": """
def waiting():
    try:
        yield x * 2
    except KeyError:
        net(x)

def main():
    generator = waiting()
    next(generator)
    generator.throw(KeyError("wake up"))
""",
    "in a hook": """
net.first.register_forward_hook(lambda module, args, output: output @ output)

def main():
    return net(x)
""",
    "in a backward hook": """
def refuse(grad):
    return grad @ grad @ grad

class Learning(nn.Module):
    def forward(self, x):
        leaf = x.clone().requires_grad_()
        leaf.register_hook(refuse)
        (leaf * 2).sum().backward()

def main():
    return Learning()(x)
""",
    "in a custom backward": """
class Refusing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad @ grad

class Learning(nn.Module):
    def forward(self, x):
        Refusing.apply(x.clone().requires_grad_()).sum().backward()

def main():
    return Learning()(x)
""",
    "stop iteration": """
class Ending(nn.Module):
    def forward(self, x):
        return next(iter([]))

def main():
    return nn.Sequential(Ending())(x)
""",
    "an interrupt": """
class Interrupted(nn.Module):
    def forward(self, x):
        y = x * 2
        raise KeyboardInterrupt

def main():
    return nn.Sequential(Interrupted())(x)
""",
    "an exit": """
class Leaving(nn.Module):
    def forward(self, x):
        sys.exit(3)

def main():
    return nn.Sequential(Leaving())(x)
""",
    "an exception with notes": """
class Noting(nn.Module):
    def forward(self, x):
        try:
            return x @ x
        except RuntimeError as error:
            error.add_note("shapes were chosen by hand")
            raise

def main():
    return nn.Sequential(Noting())(x)
""",
    "in the program's own mode": """
from torch.overrides import TorchFunctionMode

class Checking(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))

def main():
    with Checking():
        return net(x)
""",
    "an exception that cannot be changed": """
from dataclasses import dataclass

@dataclass(frozen=True)
class Frozen(Exception):
    reason: str

class Raising(nn.Module):
    def forward(self, x):
        raise Frozen("as it is")

def main():
    return nn.Sequential(Raising())(x)
""",
    "an exception with attributes of its own": """
class Hostile(Exception):
    @property
    def __cause__(self):
        raise SystemExit("not to be asked for")

    @property
    def args(self):
        raise SystemExit("not to be asked for")

    def with_traceback(self, traceback):
        raise SystemExit("not to be used")

class Raising(nn.Module):
    def forward(self, x):
        raise Hostile

def main():
    try:
        nn.Sequential(Raising())(x)
    except Hostile as error:
        frames = []
        traceback = error.__traceback__
        while traceback is not None:
            frames.append((traceback.tb_frame.f_code.co_qualname, traceback.tb_lineno))
            traceback = traceback.tb_next
        return frames
""",
    "in a compiled module": """
import torch._dynamo

@torch._dynamo.disable
def refuse(x):
    return x @ x

class Refusing(nn.Module):
    def forward(self, x):
        return refuse(x + 1)

def main():
    torch._dynamo.reset()
    return nn.Sequential(torch.compile(Refusing(), backend="eager"))(x)
""",
    "handled where it happened": """
import traceback

def main():
    seen = []
    for attempt in (lambda: x @ x, lambda: x.view(7), lambda: net(x), lambda: nn.MaxPool2d(9)(x)):
        try:
            attempt()
        except Exception:
            seen.append(traceback.format_exc())
    return seen
""",
    "in a subclass": """
class Marked(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})

def main():
    return nn.Sequential(nn.Linear(9, 9))(x.as_subclass(Marked))
""",
}
"""By what fails, below the module and input above."""
