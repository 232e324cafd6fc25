"""TensorTracer's names, with the API of its document and with the one of its last version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import shapetrace
from shapetrace import H5PYSaverCallback, ModelTracer, Variable, stack_padded_tensors, stack_tensors
from shapetrace.compat import tensortrace
from shapetrace.compat.tensortrace import trace_model
from shapetrace.hdf5.library import library
from shapetrace.hdf5.reading import read_values


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        half = x.to(torch.bfloat16)
        count = x.shape[0]
        flags = x > 1
        name = f"batch of {count}"
        pair = (half, name)
        return self.linear(x) + len(pair) * flags


def batches() -> list[torch.Tensor]:
    return [torch.arange(3.0 * size).reshape(size, 3) for size in (2, 2, 4)]


def run(tracer: ModelTracer) -> ModelTracer:
    with tracer:
        for batch in batches():
            tracer.model(batch)
    return tracer


def test_all_names_are_there() -> None:
    for name in tensortrace.__all__:
        assert getattr(tensortrace, name) is not None
    assert shapetrace.trace_model.__module__ == "shapetrace.compat.tracy_nn"
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        tensortrace.nothing  # noqa: B018


def test_one_call_is_traced() -> None:
    model = Model()
    output, tracer = trace_model(model, ["forward", "forward.count"], torch.ones(2, 3))
    assert torch.equal(tracer.results["forward"].values[0], output)
    assert tracer.results["forward.count"].values == [2]


@pytest.mark.parametrize("stack", [stack_tensors, stack_padded_tensors])
def test_callbacks_that_take_a_result(stack: Any) -> None:
    seen: list[tuple[str, list[int]]] = []

    def note(name: str, result: Any) -> None:
        seen.append((name, list(result.iterations)))
        result.values[:] = [value[:2] for value in result.values]

    variable = Variable(["forward.x"], gather_interval=2, post_gather_callbacks=[note, stack])
    run(ModelTracer(Model(), variable))
    assert seen == [("forward.x", [1, 2]), ("forward.x", [3])]
    first, second = variable.results["forward.x"].values
    assert (first.shape, second.shape) == ((2, 2, 3), (1, 2, 3))


@pytest.mark.parametrize("position", ["pre_gather", "post_gather", "post_trace"])
def test_the_saver_in_every_position(tmp_path: Path, position: str) -> None:
    path = tmp_path / "run.h5"
    saver = H5PYSaverCallback(path)
    callbacks: dict[str, Any] = {f"{position}_callbacks": [saver]}
    paths = ["forward", "forward.*"]
    tracer = run(ModelTracer(Model(), paths, gathering_interval=2, **callbacks))
    saver.close()
    assert tracer.problems == saver.problems == []
    if position != "post_trace":
        assert all(not entry.values for entry in tracer.results.values())
    with library().File(path) as file:
        assert "forward" in file

    def read(name: str) -> tuple[list[Any], list[Any], list[Any]]:
        saved = read_values(path, f"forward.{name}")
        return (
            [each.value for each in saved],
            [number for each in saved for number in each.iterations],
            [rank for each in saved for rank in each.ranks],
        )

    values, iterations, ranks = read("x")
    assert [value.tolist() for value in values] == [batch.tolist() for batch in batches()]
    assert (iterations, ranks) == ([1, 2, 3], [0, 0, 0])
    assert read("half")[0][0].dtype == torch.bfloat16
    assert read("flags")[0][0].dtype == torch.bool
    assert read("name")[0] == ["batch of 2", "batch of 4"]
    assert read("count")[0] == [2, 4]
    assert read("self")[0] == ["<Model>"]
