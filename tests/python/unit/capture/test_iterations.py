"""Iterations: recursion, generators, coroutines, threads, and what models are wrapped in."""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import Any, cast

import pytest
import torch
from torch import nn

from shapetrace import ModelTracer
from shapetrace._frames import innermost_of
from tests.python.unit.capture.models import (
    AsyncStreaming,
    Awaited,
    Encoder,
    Returns,
    Streaming,
)
from tests.support.reference.values import same

X = torch.arange(4.0).reshape(2, 2)


def test_a_forward_that_is_called_directly_counts_as_well() -> None:
    model = Returns(None)
    with ModelTracer(model, ["forward.x", "linear"]) as tracer:
        model.forward(X)
        model(X + 1)
        model.forward(X + 2)
    assert tracer.results["forward.x"].iterations == [1, 2, 3]
    assert tracer.results["linear"].iterations == [1, 2, 3]


def test_a_forward_that_fails_when_it_is_called_directly_is_over() -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = x * 2
            if x.sum() < 0:
                raise RuntimeError
            return y

    model = Model()
    kept: list[Any] = []
    with ModelTracer(model, ["forward.y"], gathering_interval=2) as tracer:
        for sign in (1, -1, -1, 1):
            try:
                model.forward(X * sign)
            except RuntimeError as error:
                kept.append(error)
        model(X)
    assert tracer.results["forward.y"].iterations == [1, 2, 3, 4, 5]


def test_a_model_that_calls_itself() -> None:
    class Recursive(nn.Module):
        def forward(self, depth: int) -> int:
            before = depth
            result = depth
            if depth:
                result = self(depth - 1) + self.forward(0)
            depth = before + 10
            return result

    model = Recursive()
    with ModelTracer(model, ["forward.depth", "forward.before"]) as tracer:
        model(2)
    assert tracer.current_training_iteration == 1
    # What a call has seen is its own: that others have changed theirs since is no change of it.
    assert tracer.results["forward.before"].values == [2, 1, 0]
    assert tracer.results["forward.depth"].values == [2, 1, 0, 10, 0, 10, 11, 0, 10, 12]


def test_a_model_that_yields() -> None:
    model = Streaming()
    with ModelTracer(model, ["forward.x", "linear"]) as tracer:
        first, second = model(X), model(X + 1)
        next(first), next(second)
        list(first), list(second)
    assert tracer.current_training_iteration == 2
    assert tracer.results["linear"].iterations == [1, 2, 1, 2]
    assert sorted(tracer.results["forward.x"].iterations) == [1] * 5 + [2] * 5


def test_models_that_are_awaited_side_by_side() -> None:
    model = Awaited()

    async def main() -> None:
        async def pause() -> None:
            await asyncio.sleep(0)

        await asyncio.gather(model(X, pause), model(X + 1, pause), model(X + 2, pause))

    with ModelTracer(model, ["forward.x", "forward.z", "linear"]) as tracer:
        asyncio.run(main())
    for entry in tracer.results.values():
        assert entry.iterations == [1, 2, 3]
    assert [int(value[0, 0]) for value in tracer.results["forward.x"].values] == [0, 1, 2]


def test_a_model_that_yields_asynchronously() -> None:
    model = AsyncStreaming()

    async def main() -> None:
        async for _ in model(X):
            pass

    with ModelTracer(model, ["linear"]) as tracer:
        asyncio.run(main())
    assert tracer.results["linear"].iterations == [1, 1]


def test_calls_on_several_threads_are_iterations_of_their_own() -> None:
    model = Returns(None)
    barrier = threading.Barrier(4)

    def work(number: int) -> None:
        barrier.wait()
        model(X + number)

    with ModelTracer(model, ["forward.x", "linear"]) as tracer:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(tracer.results["forward.x"].iterations) == [1, 2, 3, 4]
    assert sorted(tracer.results["linear"].iterations) == [1, 2, 3, 4]


def test_threads_of_the_model_belong_to_its_iteration() -> None:
    class Parallel(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            results: list[torch.Tensor] = []
            threads = [
                threading.Thread(target=lambda part=part: results.append(part(x)))
                for part in self.parts
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return torch.stack(results).sum(0)

    model = Parallel()
    with ModelTracer(model, ["parts.*"]) as tracer:
        model(X)
        model(X + 1)
    assert [entry.iterations for entry in tracer.results.values()] == [[1, 2]] * 3


def test_replicas_are_the_model() -> None:
    model = Encoder(1)
    given = torch.ones(1, 2, 6)
    with ModelTracer(model, ["forward", "layers.0.forward.q"]) as tracer:
        replica: Any = model._replicate_for_data_parallel()
        replica.layers = nn.ModuleList([cast(Any, model.layers[0])._replicate_for_data_parallel()])
        output = replica(given)
    assert same(tracer.results["forward"].values, [output])
    assert len(tracer.results["layers.0.forward.q"].values) == 2


@pytest.mark.parametrize("is_wrapper_given", [True, False])
def test_data_parallel(is_wrapper_given: bool) -> None:
    model = Encoder(1)
    wrapped = nn.DataParallel(model)
    with ModelTracer(wrapped if is_wrapper_given else model, ["forward", "layers.0"]) as tracer:
        wrapped(torch.ones(1, 2, 6))
        model(torch.ones(1, 2, 6))
    assert tracer.results["forward"].iterations == [1, 2]
    assert tracer.results["layers.0"].iterations == [1, 2]
    assert "__call__" not in vars(nn.DataParallel)


def test_a_frame_is_told_from_a_later_one_with_its_id() -> None:
    frame = sys._getframe()
    code = frame.f_code

    def called() -> None:
        inner = sys._getframe()
        assert innermost_of(inner, {id(frame): (code, "outer")}) == (frame, "outer")
        assert innermost_of(inner, {id(frame): (code, 1), id(inner): (code, 2)}) == (frame, 1)
        assert innermost_of(inner, {id(frame): (inner.f_code, "gone")}) is None

    called()


def test_other_models_of_the_class_do_not_count() -> None:
    model, other = Encoder(1), Encoder(1)
    given = torch.ones(1, 2, 6)
    with ModelTracer(model, ["forward", "layers.0.forward.q", "layers.0.scaled"]) as tracer:
        other(given)
        model(given)
        other.layers[0](given)
    assert tracer.current_training_iteration == 1
    assert len(tracer.results["forward"].values) == 1
    assert len(tracer.results["layers.0.scaled"].values) == 1


def test_a_forked_child_captures_nothing() -> None:
    import os

    model = Returns(None)
    with ModelTracer(model, ["forward.x"]) as tracer:
        model(X)
        child = os.fork()
        if child == 0:
            model(X + 1)
            os._exit(len(tracer.results["forward.x"].values))
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 1


def test_a_method_that_is_called_from_outside() -> None:
    model = Encoder(1)
    with ModelTracer(model, ["layers.0.split.x", "forward"]) as tracer:
        cast(Any, model.layers[0]).split(torch.ones(1, 2, 6))
    assert tracer.problems == [
        "nothing was captured: the model was not called within the tracer's block"
    ]
