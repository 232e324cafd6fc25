"""What fails is recorded with its inputs, and the exception is the program's own, untouched."""

from __future__ import annotations

import contextlib
import sys
import traceback

import pytest
import torch
from torch import nn
from torch.nn import functional

import shapetrace
from tests.support.recorder import LEVELS, Harmless, Traced, outline, trace_of, unindented

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

def main():
    leaf = x.clone().requires_grad_()
    leaf.register_hook(refuse)
    (leaf * 2).sum().backward()
""",
    "in a custom backward": """
class Refusing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad @ grad

def main():
    leaf = x.clone().requires_grad_()
    Refusing.apply(leaf).sum().backward()
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
    "in a subclass": """
class Marked(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})

def main():
    return nn.Sequential(nn.Linear(9, 9))(x.as_subclass(Marked))
""",
}
"""Programs that end with an exception, below the module and input above."""


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("text", FAILING.values(), ids=FAILING.keys())
def test_traceback_is_that_of_an_untraced_run(text: str, level: str, harmless: Harmless) -> None:
    harmless(NET + text, level=level)


def test_op_that_raises_is_recorded_with_its_inputs_and_every_module_it_went_through(
    harmless: Harmless,
) -> None:
    trace = harmless(NET + "def main(): return net(x)")
    assert outline(trace) == unindented(
        """
        root: Net(f32[2,4]) -> !RuntimeError
          first: Linear(f32[2,4]) -> f32[2,3]
            linear() (f32[2,4], f32[3,4], f32[3]) -> f32[2,3] inside
          rest: Sequential(f32[2,3]) -> !RuntimeError
            rest.0: ReLU(f32[2,3]) -> f32[2,3]
              relu() (f32[2,3]) -> f32[2,3] inside
            rest.1: Linear(f32[2,3]) -> !RuntimeError
              linear() (f32[2,3], f32[2,5], f32[2]) -> !RuntimeError inside
        """
    )
    messages = {event.error.message for event in (*trace.ops, *trace.modules) if event.error}
    assert messages == {"mat1 and mat2 shapes cannot be multiplied (2x3 and 5x2)"}


def test_kernel_that_raises_is_recorded_under_its_op(harmless: Harmless) -> None:
    trace = harmless(NET + "def main(): return x @ x", level="aten")
    assert outline(trace) == unindented(
        """
        @ (f32[2,4], f32[2,4]) -> !RuntimeError
          mm() (f32[2,4], f32[2,4]) -> !RuntimeError
        """
    )


def test_call_that_fails_and_later_succeeds_is_two_records(traced: Traced) -> None:
    trace = traced(
        """
        sizes = iter([(3, 3), (4, 2), (9, 9), (4, 2)])

        def main():
            x = torch.ones(2, 4)
            for _ in range(4):
                try:
                    x.view(next(sizes))
                except RuntimeError:
                    pass
        """
    )
    assert outline(trace) == unindented(
        """
        ones(2, 4) () -> f32[2,4]
        view((3, 3)) (f32[2,4]) -> !RuntimeError
        view((4, 2)) (f32[2,4]) -> f32[4,2] ×2
        view((9, 9)) (f32[2,4]) -> !RuntimeError
        """
    )


class Unlucky(nn.Module):
    def forward(self, error: BaseException) -> None:
        raise error


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, GeneratorExit, StopIteration])
def test_exception_is_the_same_object(kind: type[BaseException]) -> None:
    error, cause = kind("own"), KeyError("cause")
    error.__cause__ = cause
    with shapetrace.trace(), pytest.raises(kind) as caught:
        nn.Sequential(Unlucky())(error)
    assert caught.value is error
    assert error.__cause__ is cause
    assert error.__context__ is None
    assert error.args == ("own",)


def test_exception_that_leaves_the_recording_shows_nothing_of_ours() -> None:
    def fail() -> None:
        functional.pad(torch.ones(2, 3), (9, 9), mode="reflect")

    with pytest.raises((RuntimeError, NotImplementedError)) as plain:
        fail()
    with pytest.raises((RuntimeError, NotImplementedError)) as seen, shapetrace.trace():
        fail()
    assert formatted(seen.value) == formatted(plain.value)


def formatted(error: BaseException) -> list[str]:
    """The traceback below the frame that caught the exception."""
    assert error.__traceback__ is not None
    return traceback.format_tb(error.__traceback__.tb_next)


def test_message_of_an_exception_never_prints_a_tensor(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise AssertionError("a tensor was printed")

    monkeypatch.setattr(torch._tensor_str, "_str", refuse)

    def fail() -> None:
        with contextlib.suppress(ValueError):
            Unlucky()(ValueError("bad values", torch.ones(3)))

    call = trace_of(fail).modules[0]
    assert call.error is not None
    assert call.error.message == "bad values, <Tensor of shape (3,)>"


def test_exception_whose_text_cannot_be_had_is_recorded_by_its_class() -> None:
    class Silent(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    def fail() -> None:
        with pytest.raises(Silent):
            Unlucky()(Silent())

    call = trace_of(fail).modules[0]
    assert call.error is not None
    assert (call.error.type, call.error.message) == ("Silent", "")


def test_endless_recursion_ends_as_it_does_without_us() -> None:
    class Endless(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.as_tensor(self(x * 2))

    limit = sys.getrecursionlimit()
    with shapetrace.trace() as recording:
        with pytest.raises(RecursionError) as caught:
            Endless()(torch.ones(1))
        nn.Linear(1, 1)(torch.ones(1))
    assert caught.value.__context__ is None
    assert "shapetrace" not in "".join(traceback.format_exception(caught.value))
    assert sys.getrecursionlimit() == limit
    assert recording.modules[-1].class_name == "Linear"
    assert recording.modules[-1].parent is None
