"""Modes of the program's own: around a recording, inside it, and across its beginning or end."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import shapetrace
from tests.support.recorder import LEVELS, Harmless, Traced, faults_of, outline, unindented
from tests.support.torches import TORCH

Context: TypeAlias = AbstractContextManager[Any]


class Doubling(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        return result * 2 if func is torch.ones else result


class DoublingKernels(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        return result * 2 if func is torch.ops.aten.ones.default else result


class DefaultDevice:
    """``torch.set_default_device`` as a context."""

    def __enter__(self) -> None:
        torch.set_default_device("meta")

    def __exit__(self, *_: object) -> None:
        torch.set_default_device(None)


CONTEXTS: dict[str, Any] = {
    "device": lambda: torch.device("meta"),
    "default device": DefaultDevice,
    "function mode": Doubling,
    "dispatch mode": DoublingKernels,
    "fake tensors": FakeTensorMode,
    "no gradients": torch.no_grad,
    "inference": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu"),
}


def facts() -> tuple[object, ...]:
    """What a factory makes now, which every one of the contexts has a say in."""
    made = torch.ones(2, requires_grad=True)
    product = torch.eye(2) @ torch.eye(2)
    value = None if type(made) is not torch.Tensor or made.is_meta else made.tolist()
    return (
        type(made).__name__,
        made.device.type,
        value,
        (made + 1).requires_grad,
        made.is_inference(),
        product.dtype,
    )


@pytest.fixture(params=list(CONTEXTS.values()), ids=list(CONTEXTS))
def context(request: pytest.FixtureRequest) -> Callable[[], Context]:
    make: Callable[[], Context] = request.param
    return make


@pytest.fixture(params=LEVELS)
def recording(request: pytest.FixtureRequest) -> shapetrace.LiveRecording:
    return shapetrace.trace(level=request.param)


def expected(make: Callable[[], Context]) -> tuple[tuple[object, ...], tuple[object, ...]]:
    """What is made inside a context and outside of it, without us."""
    outside = facts()
    with make():
        inside = facts()
    assert inside != outside
    return inside, outside


def check(recording: shapetrace.LiveRecording) -> None:
    assert not faults_of(recording.trace), faults_of(recording.trace)
    assert {op.name for op in recording.ops} >= {"torch.ones", "torch.eye"}
    assert {op.function for op in recording.ops} >= {"facts"}


def test_context_around(context: Callable[[], Context], recording: Any) -> None:
    inside, outside = expected(context)
    with context():
        with recording:
            assert facts() == inside
        assert facts() == inside
    assert facts() == outside
    check(recording)


def test_context_inside(context: Callable[[], Context], recording: Any) -> None:
    inside, outside = expected(context)
    with recording:
        with context():
            assert facts() == inside
        assert facts() == outside
    assert facts() == outside
    check(recording)


def test_context_entered_before_and_left_inside(
    context: Callable[[], Context], recording: Any
) -> None:
    inside, outside = expected(context)
    entered = context()
    entered.__enter__()
    recording.start()
    assert facts() == inside
    entered.__exit__(None, None, None)
    assert facts() == outside
    recording.stop()
    assert facts() == outside
    check(recording)


def test_context_entered_inside_and_left_after(
    context: Callable[[], Context], recording: Any
) -> None:
    inside, outside = expected(context)
    entered = context()
    recording.start()
    assert facts() == outside
    entered.__enter__()
    assert facts() == inside
    recording.stop()
    assert facts() == inside
    entered.__exit__(None, None, None)
    assert facts() == outside
    check(recording)


@pytest.mark.slow
def test_two_contexts_at_once(context: Callable[[], Context], recording: Any) -> None:
    outside = facts()
    if context is DefaultDevice and (2, 5) <= TORCH <= (2, 8):
        pytest.skip("torch 2.5 to 2.8 itself: the default device takes off another device's mode")
    with torch.device("cpu"), context(), Doubling():
        inside = facts()
    with torch.device("cpu"), context(), recording, Doubling():
        assert facts() == inside
    with recording, torch.device("cpu"), context(), Doubling():
        assert facts() == inside
    assert facts() == outside
    check(recording)


def test_stepping_around_a_module_keeps_the_order_of_modes(recording: Any) -> None:
    compiled = torch.compile(torch.nn.Linear(2, 2), backend="eager")
    with recording, Doubling(), DoublingKernels(), torch.device("cpu"):
        before = stacks()
        compiled(torch.zeros(1, 2))
        assert stacks() == before


def stacks() -> list[str]:
    """The modes that are on, by class."""
    functions = [
        torch._C._get_function_stack_at(index)
        for index in range(torch._C._len_torch_function_stack())
    ]
    dispatchers = [
        torch._C._get_dispatch_stack_at(index)
        for index in range(torch._C._len_torch_dispatch_stack())
    ]
    return [type(mode).__name__ for mode in (*functions, *dispatchers)]


def test_what_a_mode_passes_on_is_at_its_place_and_no_value_is_claimed(traced: Traced) -> None:
    trace = traced(
        """
        from torch.overrides import TorchFunctionMode

        class Adding(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                result = func(*args, **(kwargs or {}))
                return result + 1 if func is torch.Tensor.mul else result

        x = torch.ones(2)

        def main():
            with Adding(), torch.device("cpu"):
                y = x * 3
                z = F.pad(y, (1, 1))
        """
    )
    assert outline(trace) == unindented(
        """
        * (f32[2]) -> f32[2] inside
        + (f32[2]) -> f32[2]
        pad((1, 1)) (f32[2]) -> f32[4] inside
        """
    )
    functions = [(op.name.rsplit(".", 1)[1], op.function) for op in trace.ops]
    assert functions == [("mul", "main"), ("add", "Adding.__torch_function__"), ("pad", "main")]


SUBCLASS = """
seen = []

class Marked(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        seen.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})

given = torch.ones(2, 3).as_subclass(Marked)

def main():
    seen.clear()
    with torch.device("cpu"):
        y = F.pad(torch.cat([given, given]) * 2, (1, 1)) @ torch.ones(5, 2)
    return y, given.shape, list(seen)
"""


@pytest.mark.parametrize("level", LEVELS)
def test_handler_of_a_subclass_sees_the_same_calls(level: str, harmless: Harmless) -> None:
    harmless(SUBCLASS, level=level)


WRAPPER = """
from torch.utils._pytree import tree_map

seen = []

class Wrapping(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        seen.append(str(func))
        unwrap = lambda value: value.inner if isinstance(value, Wrapping) else value
        wrap = lambda value: Wrapping(value) if isinstance(value, torch.Tensor) else value
        result = func(*tree_map(unwrap, args), **tree_map(unwrap, kwargs or {}))
        return tree_map(wrap, result)

given = Wrapping(torch.ones(2, 3))
net = nn.Linear(3, 2)

def main():
    seen.clear()
    return net(given * 2).inner, list(seen)
"""


@pytest.mark.parametrize("level", LEVELS)
def test_kernels_a_wrapper_handles_are_the_same(level: str, harmless: Harmless) -> None:
    harmless(WRAPPER, level=level)
