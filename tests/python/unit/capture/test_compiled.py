"""Models that torch.compile has a hand in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

from shapetrace import ModelTracer
from tests.python.unit.capture.models import Attention
from tests.support.reference.values import same

X = torch.linspace(-1, 1, 24).reshape(1, 4, 6)


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Stack(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = Attention()
        self.second = Attention()

    def forward(self, x: torch.Tensor, scale: float = 2.0) -> torch.Tensor:
        h = self.first(x)
        y = self.second(h) * scale
        return y


def count(**how: Any) -> Any:
    from torch._dynamo.testing import CompileCounter

    counter = CompileCounter()
    return counter, {"backend": counter, **how}


@pytest.mark.parametrize("fullgraph", [True, False])
def test_a_compiled_model_is_captured_from_the_outside(fullgraph: bool) -> None:
    model = Stack().eval()
    counter, how = count(fullgraph=fullgraph)
    compiled: Any = torch.compile(model, **how)
    expected = compiled(X)
    frames = counter.frame_count
    tracer = ModelTracer(compiled, ["forward", "forward.x", "forward.scale", "forward.h", "first"])
    with tracer:
        assert same(compiled(X), expected)
    assert same(compiled(X), expected)
    assert counter.frame_count == frames
    assert same(tracer.results["forward"].values, [expected])
    assert same(tracer.results["forward.x"].values, [X])
    assert tracer.results["forward.scale"].values == [2.0]
    assert tracer.problems == [
        (
            "forward, first.forward: run in code that torch.compile made; only what a compiled "
            "module is called with and returns can be captured"
        )
    ]


@torch.no_grad()
def test_a_part_that_is_compiled() -> None:
    model = Stack().eval()
    counter, how = count()
    model.second.compile(**how)
    model(X)
    frames = counter.frame_count
    paths = ["forward.h", "first.query", "second.forward.x", "second", "second.forward.q"]
    with ModelTracer(model, paths) as tracer:
        output = model(X)
    model(X)
    assert counter.frame_count == frames
    assert same(tracer.results["second.forward.x"].values, tracer.results["forward.h"].values)
    assert same(tracer.results["second"].values[0] * 2, output)
    assert len(tracer.results["first.query"].values) == 1
    assert tracer.problems == [
        (
            "second.forward: run in code that torch.compile made; only what a compiled module is "
            "called with and returns can be captured"
        )
    ]


def test_a_model_that_is_compiled_meanwhile_has_one_graph() -> None:
    model = Stack().eval()
    counter, how = count(fullgraph=True)
    expected = model(X)
    with ModelTracer(model, ["forward", "forward.h", "first.forward.q", "first.scaled.scores"]):
        compiled: Any = torch.compile(model, **how)
        assert same(compiled(X), expected)
    assert counter.frame_count == 1


@pytest.mark.filterwarnings("ignore:.*torch.jit.trace")
def test_scripted_modules_are_captured_from_the_outside() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.jit.trace(nn.Linear(6, 6), X)

        def forward(self, x: torch.Tensor) -> Any:
            return self.inner(x)

    model = Model()
    with ModelTracer(model, ["inner", "forward"]) as tracer:
        output = model(X)
    assert same(tracer.results["forward"].values, [output])
