"""No tensor, module or frame lives longer because it was watched, and memory does not grow."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

import shapetrace
from tests.support.recorder import LEVELS, faults_of
from tests.support.reference.remains import Marker, Surroundings, survivors

pytestmark = pytest.mark.slow


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, scale: torch.Tensor | None = None) -> torch.Tensor:
        hidden = self.layer(x)
        hidden = functional.gelu(hidden) + x
        return torch.cat([hidden, hidden])[: len(x)]


def plain_calls() -> dict[str, list[Any]]:
    marker = Marker()
    net, x = Block(), torch.ones(2, 4)
    y = net(x, scale=x)
    z = y * 2
    return {"module": [net, net.layer], "tensor": [x, y, z], "frame": [marker]}


def direct_forward() -> dict[str, list[Any]]:
    net, x = Block(), torch.ones(2, 4)
    y = net.forward(x)
    return {"module": [net], "tensor": [x, y]}


def failing_call() -> dict[str, list[Any]]:
    marker = Marker()
    net, x = Block(), torch.ones(2, 3)
    try:
        net(x)
    except RuntimeError:
        pass
    try:
        functional.pad(x, (9, 9), mode="reflect")
    except (RuntimeError, NotImplementedError):
        pass
    return {"module": [net], "tensor": [x], "frame": [marker]}


def backward() -> dict[str, list[Any]]:
    net, x = Block(), torch.ones(2, 4, requires_grad=True)
    y = net(x)
    y.register_hook(lambda grad: grad * 2)
    y.sum().backward()
    assert x.grad is not None
    return {"module": [net], "tensor": [x, y, x.grad]}


def containers() -> dict[str, list[Any]]:
    x = torch.ones(2, 4)
    parts = x.split(2, dim=1)
    stacked = torch.stack(list(parts))
    values, indices = x.max(dim=1)
    return {"tensor": [x, *parts, stacked, values, indices]}


def subclass() -> dict[str, list[Any]]:
    class Marked(torch.Tensor):
        pass

    x = torch.ones(2, 4).as_subclass(Marked)
    return {"tensor": [x, x * 2]}


def closures() -> dict[str, list[Any]]:
    x = torch.ones(2, 4)

    def double() -> torch.Tensor:
        return x * 2

    values = [double() for _ in range(3)]
    return {"tensor": [x, *values], "function": [double]}


def generator() -> dict[str, list[Any]]:
    def rows(x: torch.Tensor) -> Any:
        for row in x:
            yield row * 2

    x = torch.ones(2, 4)
    values = list(rows(x))
    return {"tensor": [x, *values]}


STORIES: list[Callable[[], dict[str, list[Any]]]] = [
    plain_calls,
    direct_forward,
    failing_call,
    backward,
    containers,
    subclass,
    closures,
    generator,
]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("story", STORIES)
def test_nothing_outlives_its_last_use_inside_a_recording(
    story: Callable[[], dict[str, list[Any]]], level: str
) -> None:
    assert survivors(story) == []
    with shapetrace.trace(level=level) as recording:
        assert survivors(story) == []
    assert recording.ops
    assert not faults_of(recording.trace)


def test_a_tensor_goes_as_soon_as_its_function_lets_go_of_it() -> None:
    alive = []

    def work() -> None:
        x = torch.ones(2, 4)
        y = x * 2
        reference = weakref.ref(y)
        z = y + x
        del y
        alive.append(reference() is not None)
        z.add_(1)
        try:
            functional.pad(z, (9, 9), mode="reflect")
        except (RuntimeError, NotImplementedError):
            pass
        reference = weakref.ref(z)
        del z
        x + 1
        alive.append(reference() is not None)

    gc.disable()
    try:
        with shapetrace.trace():
            work()
    finally:
        gc.enable()
    assert alive == [False, False]


def test_recording_that_is_dropped_goes_with_all_that_it_knew() -> None:
    net = Block()
    recording = shapetrace.trace(net)
    with recording:
        net(torch.ones(2, 4))
    text = str(recording.trace)
    references: list[weakref.ref[Any]] = [weakref.ref(net), weakref.ref(recording)]
    del net, recording
    gc.collect()
    assert [reference() for reference in references] == [None, None]
    assert text


def test_hooks_of_the_interpreter_are_left_alone_meanwhile() -> None:
    net = Block()
    before = Surroundings.now(net)
    with shapetrace.trace():
        net(torch.ones(2, 4))
        during = Surroundings.now(net)
    for part in (
        "dispatch_modes",
        "global_hooks",
        "hooks_and_attributes",
        "threads",
        "trace_function",
        "profile_function",
        "exception_hooks",
        "warnings",
        "grad_mode",
    ):
        assert getattr(during, part) == getattr(before, part), part


def test_locals_of_the_program_are_its_own() -> None:
    def work(x: torch.Tensor) -> tuple[list[str], torch.Tensor]:
        names = locals()
        y = x * 2
        z = y + 1
        return sorted(names), z

    def read_by_another(x: torch.Tensor) -> tuple[list[str], torch.Tensor]:
        names = callers_names()
        y = x * 2
        z = y + names["x"]
        return sorted(set(names) - {"y", "z"}), z

    def callers_names() -> dict[str, Any]:
        return sys._getframe(1).f_locals

    with shapetrace.trace():
        assert work(torch.ones(1))[0] == ["x"]
        names, z = read_by_another(torch.ones(1))
    assert z.tolist() == [3]
    assert "x" in names


def objects_after(rounds: int, work: Callable[[int], object]) -> int:
    """How many objects the collector knows after so many rounds."""
    for index in range(rounds):
        work(index)
    gc.collect()
    return len(gc.get_objects())


def changing_shapes(index: int) -> object:
    return torch.ones(index % 50 + 1, 4) * 2


def changing_modules(index: int) -> object:
    return Block()(torch.ones(index % 40 + 1, 4))


def changing_errors(index: int) -> object:
    try:
        return torch.ones(index + 1, 4) @ torch.ones(3)
    except RuntimeError as error:
        return str(error)


def changing_outputs(index: int) -> object:
    return torch.ones(60).view(-1, (1, 2, 3, 4, 5, 6)[index % 6]), torch.ones(8).nonzero()


def changing_kinds(index: int) -> object:
    kind = type("Kind", (torch.Tensor,), {})
    return torch.ones(2).as_subclass(kind) * index


def changing_code(index: int) -> object:
    names: dict[str, Any] = {"torch": torch}
    exec(f"y = torch.ones(2) * {index}", names)
    return names["y"]


def changing_arguments(index: int) -> object:
    return Block()(torch.ones(2, 4), scale={f"name {index}": torch.ones(index % 30 + 1)})


def changing_depth(index: int) -> object:
    def down(x: torch.Tensor, depth: int) -> torch.Tensor:
        return x * 2 if depth == 0 else down(x, depth - 1)

    return down(torch.ones(1), index % 20)


CHANGING = [
    changing_shapes,
    changing_modules,
    changing_errors,
    changing_outputs,
    changing_kinds,
    changing_arguments,
    changing_depth,
    changing_code,
]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("work", CHANGING)
def test_memory_stops_growing(work: Callable[[int], object], level: str) -> None:
    with shapetrace.trace(level=level) as recording:
        # From one place: a call from another one is another call.
        counts = [objects_after(300, work) for _ in range(4)]
        records = len(recording.ops) + len(recording.modules)
    growth = counts[-1] - counts[-2]
    assert growth < 200, f"{growth} more objects after as many rounds again"
    assert records < 3000
    assert not faults_of(recording.trace)
