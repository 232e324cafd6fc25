"""Each step ends where it would without us, on every line of a model, and says nothing more."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

import pytest

from tests.python.e2e.agent.differential import Watched, same_as_without_us
from tests.support.debug_client import Launch

pytestmark = pytest.mark.e2e

MODEL = """
import torch
from torch import nn
import torch.nn.functional as F

class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.fc = nn.Linear(size, size)
        self.norm = nn.LayerNorm(size)

    def forward(self, x):
        y = self.fc(x)
        y = F.relu(y)
        return self.norm(x + y)

def scale(x, by):
    twice = x * by
    return twice

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block(4) for _ in range(2))
        self.head = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), Block(4), nn.Dropout(0.1))
        self.head[0].register_forward_hook(self.seen)

    def seen(self, module, args, output):
        count = len(args)
        return output + count

    def forward(self, x):
        y = x * 2  # @first_op
        for block in self.blocks:
            y = block(y)
        y = scale(y, 3)
        parts = [part + 1 for part in y.unbind()]
        y = torch.stack(parts)
        y = self.head(
            y
        )
        z = F.max_pool1d(y[None], 2)  # @pool
        z = F.pad(z, (1, 1))
        return y.sum() + z.mean()

class Marked(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return super().__torch_function__(function, types, args, kwargs or {})

class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x * 2
        return y

    @staticmethod
    def backward(ctx, gradient):
        twice = gradient * 2
        return twice

def main():
    net = Net()  # @begin
    for i in range(2):
        loss = net(torch.ones(2, 4))
        loss.backward()
    marked = torch.ones(2).as_subclass(Marked)  # @marked
    marked = marked + 1
    x = torch.ones(2, requires_grad=True)
    y = Twice.apply(x)
    y.register_hook(lambda gradient: gradient * 1)
    y.sum().backward()
    print(marked.shape, x.grad)  # @last

main()
"""

PASSES = MODEL.replace("for i in range(2)", "for i in range(9)")


@pytest.mark.parametrize(("just_my_code", "over"), [(True, 24), (False, 12)])
def test_each_kind_of_step(just_my_code: bool, over: int, tmp_path: Path) -> None:
    """Where libraries are debugged as well, not out of torch's module call: around it is ours."""
    routes = [
        ["stepIn"],
        ["stepIn", "stepIn"],
        ["stepIn", "stepIn", *["stepOut"] * 3],
        ["next"] * over,
        ["stepIn"] * 50,
    ]
    drive = partial(Watched.routes, routes=routes, mark="first_op")
    same_as_without_us(PASSES, drive, tmp_path, Launch(just_my_code=just_my_code))


def test_any_steps(tmp_path: Path) -> None:
    choose = random.Random(1)
    routes = [
        [choose.choice(["next", "stepIn", "stepIn", "stepOut"]) for _ in range(40)]
        for _ in range(2)
    ]
    drive = partial(Watched.routes, routes=routes, mark="first_op")
    same_as_without_us(PASSES, drive, tmp_path)


def test_steps_into_what_torch_calls_back(tmp_path: Path) -> None:
    """Subclasses, functions with a backward of their own, and hooks."""
    drive = partial(Watched.steps, hows=["stepIn"] * 22, mark="marked")
    same_as_without_us(MODEL, drive, tmp_path)


def test_steps_from_the_very_first_line(tmp_path: Path) -> None:
    """Our own beginnings, at the import of torch, are not stepped into."""

    def drive(watched: Watched) -> None:
        watched.session.go()
        stop = watched.stop()
        for how in ("next", "stepIn", "stepIn", "next"):
            watched.step(how, stop.thread)
        watched.session.resume(stop.thread)
        watched.end()

    same_as_without_us(MODEL, drive, tmp_path, Launch(more={"stopOnEntry": True}))
