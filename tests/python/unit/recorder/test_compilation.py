"""torch.compile: the same results, and nothing compiled once more because of us."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any, TypeAlias

import pytest
import torch
import torch._dynamo
from torch import nn

import shapetrace
from tests.support.recorder import LEVELS, bits_of, faults_of, names_of

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # Dynamo fails where a warning is an error
    pytest.mark.slow,
]

Function: TypeAlias = Callable[[torch.Tensor], torch.Tensor]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Sequential(nn.ReLU(), nn.Linear(4, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.second(self.first(x)))


class Counting:
    """A backend that counts the graphs it is given."""

    def __init__(self) -> None:
        self.graphs = 0

    def __call__(self, graph: torch.fx.GraphModule, _: object) -> Any:
        self.graphs += 1
        return graph.forward


def compiled_module(backend: Any) -> Function:
    function: Function = torch.compile(Net(), backend=backend, fullgraph=True)
    return function


def module_compiled_in_place(backend: Any) -> Function:
    net = Net()
    net.compile(backend=backend, fullgraph=True)
    return net


def compiled_function(backend: Any) -> Function:
    net = Net()

    def step(x: torch.Tensor) -> torch.Tensor:
        return net(x) * 2 + torch.nn.functional.pad(x, (0, 0))[:, :2]

    return torch.compile(step, backend=backend, fullgraph=True)


def compiled_method(backend: Any) -> Function:
    class Trainer:
        def __init__(self) -> None:
            self.net = Net()

        def step(self, x: torch.Tensor) -> torch.Tensor:
            return torch.as_tensor(self.net(x) * 2)

    return torch.compile(Trainer().step, backend=backend, fullgraph=True)


def module_with_a_compiled_part(backend: Any) -> Function:
    net = Net()
    net.second = torch.compile(net.second, backend=backend, fullgraph=True)  # type: ignore[assignment]
    return net


def function_with_graph_breaks(backend: Any) -> Function:
    net = Net()

    @torch._dynamo.disable
    def plain(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    def step(x: torch.Tensor) -> torch.Tensor:
        x = net.first(x)
        torch._dynamo.graph_break()
        return torch.as_tensor(net.second(plain(x)))

    return torch.compile(step, backend=backend)


COMPILED = [
    compiled_module,
    module_compiled_in_place,
    compiled_function,
    compiled_method,
    module_with_a_compiled_part,
    function_with_graph_breaks,
]
STORIES = {
    "before and inside": [False, True, False],
    "inside and after": [True, False],
    "inside twice": [True, True, False],
    "inside, with another shape after": [True, False, True],
}
"""In which calls a recording runs."""


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES.keys())
@pytest.mark.parametrize("make", COMPILED)
def test_nothing_is_compiled_once_more(
    make: Callable[[Any], Function], story: list[bool], level: str
) -> None:
    counts, results = [], []
    for watched in (False, True):
        torch._dynamo.reset()
        torch.manual_seed(0)
        backend = Counting()
        function = make(backend)
        graphs = []
        for recorded in story:
            recording = shapetrace.trace(level=level)
            with recording if watched and recorded else nullcontext():
                results.append(bits_of(function(torch.ones(2, 4))))
            graphs.append(backend.graphs)
        counts.append(graphs)
    assert counts[0] == counts[1]
    assert results[: len(story)] == results[len(story) :]


@pytest.mark.parametrize("level", LEVELS)
def test_backward_of_a_compiled_function(level: str) -> None:
    def run() -> object:
        torch._dynamo.reset()
        torch.manual_seed(0)
        net = Net()
        step = torch.compile(net, backend="aot_eager", fullgraph=True)
        x = torch.ones(2, 4, requires_grad=True)
        for _ in range(2):
            step(x).sum().backward()
        return bits_of([x.grad, *(parameter.grad for parameter in net.parameters())])

    plain = run()
    with shapetrace.trace(level=level) as recording:
        assert run() == plain
    assert not faults_of(recording.trace)


def test_resetting_dynamo_in_a_recording() -> None:
    backend = Counting()
    with shapetrace.trace():
        torch._dynamo.reset()
        step = compiled_function(backend)
        step(torch.ones(2, 4))
    step(torch.ones(2, 4))
    assert backend.graphs == 1


def test_compiled_regions_are_named_in_coverage() -> None:
    torch._dynamo.reset()
    compiled, step = torch.compile(Net(), backend="eager"), compiled_function("eager")
    with shapetrace.trace() as recording:
        compiled(torch.ones(2, 4))
        step(torch.ones(2, 4))
        torch.ones(1)
    notes = {(each.reason, each.where): each.count for each in recording.coverage}
    assert notes == {
        ("torch.compile region", "OptimizedModule[Net]"): 1,
        ("torch.compile region", "a compiled function"): 1,
    }
    assert names_of(recording.trace) == ["ones", "ones", "ones"]
    (call,) = recording.modules
    assert (call.note, call.class_name) == ("torch.compile region", "OptimizedModule[Net]")
    assert call.outputs


def test_recording_begun_and_ended_inside_a_compiled_function() -> None:
    recordings = []

    @torch._dynamo.disable
    def begin() -> None:
        recordings.append(shapetrace.trace().start())

    @torch._dynamo.disable
    def end() -> None:
        recordings[-1].stop()

    def step(x: torch.Tensor) -> torch.Tensor:
        begin()
        y = x * 2
        end()
        return y + 1

    run = torch.compile(step, backend="eager")
    assert run(torch.ones(2)).tolist() == [3, 3]
    assert run(torch.ones(2)).tolist() == [3, 3]
