"""What is done with captured values goes by the program's modes, graphs and traces."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

import shapetrace
from shapetrace import H5PYSaverCallback, ModelTracer, stack_padded_tensors, stack_tensors
from shapetrace.capture.results import ResultEntry, Round
from shapetrace.ranks.packing import pack
from shapetrace.ranks.sizes import size_of
from shapetrace.saving.callbacks import Callback
from shapetrace.saving.tally import Tally
from tests.python.unit.capture.test_copies import Counting, CountingKernels

X = torch.linspace(-1, 1, 6).reshape(2, 3)
PATHS = [
    *("forward", "forward.k", "forward.x", "forward.x.0", "forward.x.shape", "forward.both"),
    *("forward.self.linear.weight", "forward.self.norm.running_mean", "forward.array"),
]


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        k = 2.5
        both = {"text": "a", "x": [x, x.T]}
        array = np.arange(3)
        return self.norm(self.linear(x)) * k + len(both) + len(array)


def sent(name: str, result: ResultEntry) -> None:
    """What a rank other than 0 does with what it has captured."""
    assert size_of({name: result}) >= 0
    _, problems = pack(Round(1, 1, "eval", {name: result}))
    assert problems == []


Make = Callable[[Path], Callback]

CALLBACKS: list[Make] = [
    lambda _: Tally(),
    lambda folder: H5PYSaverCallback(folder / "run.h5"),
    lambda folder: H5PYSaverCallback(folder / "run.h5", float_dtype=torch.bfloat16),
    lambda _: stack_tensors,
    lambda _: stack_padded_tensors,
    lambda _: sent,
]

each_callback = pytest.mark.parametrize("make", CALLBACKS)


@pytest.fixture
def model() -> Model:
    torch.manual_seed(0)
    return Model().eval()


def tracer_of(model: nn.Module, callback: Callback) -> ModelTracer:
    tracer = ModelTracer(model, PATHS, post_gather_callbacks=[callback], gathering_interval=2)
    tracer.say = lambda _: None
    return tracer


@each_callback
@pytest.mark.filterwarnings("ignore:stack_")
def test_modes_see_the_programs_own_calls_only(model: Model, make: Make, tmp_path: Path) -> None:
    seen: list[Any] = []

    def run() -> None:
        with Counting() as functions, CountingKernels() as kernels:
            model(X)
            model(X)
        seen.append((functions.calls, kernels.calls))

    run()
    with tracer_of(model, make(tmp_path)) as tracer:
        run()
    assert seen[1] == seen[0]
    assert tracer.problems == []


@pytest.mark.slow
@each_callback
@pytest.mark.filterwarnings("ignore:stack_")
def test_graphs_hold_the_programs_own_calls_only(model: Model, make: Make, tmp_path: Path) -> None:
    def graphs() -> list[str]:
        exported: list[Any] = [
            torch.export.export(model, (X,), strict=strict) for strict in (True, False)
        ]
        made: Any = make_fx(lambda x: model(x) + model(x))(X)
        return [str(each.graph) for each in (made, *exported)]

    plain = graphs()
    with tracer_of(model, make(tmp_path)):
        assert graphs() == plain


@each_callback
@pytest.mark.filterwarnings("ignore:stack_")
def test_torchscript_writes_down_nothing_else(model: Model, make: Make, tmp_path: Path) -> None:
    def graph() -> tuple[list[str], list[str]]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            traced = torch.jit.trace(model, X, check_trace=False)
        kinds = [node.kind() for node in traced.inlined_graph.nodes()]
        tracers = [each for each in caught if each.category.__name__ == "TracerWarning"]
        return kinds, [str(each.message) for each in tracers]

    plain = graph()
    tracer = ModelTracer(model, PATHS, post_gather_callbacks=[make(tmp_path)])
    with tracer:
        assert graph() == plain


@pytest.mark.slow
@each_callback
@pytest.mark.parametrize("level", ["torch", "aten"])
@pytest.mark.filterwarnings("ignore:stack_")
def test_a_recording_sees_the_programs_own_calls_only(
    model: Model, make: Make, level: str, tmp_path: Path
) -> None:
    def ops() -> list[Any]:
        with shapetrace.trace(level=level) as trace:
            model(X)
            model(X)
        return [(op.name, op.line, op.count) for op in trace.ops]

    plain = ops()
    with tracer_of(model, make(tmp_path)):
        assert ops() == plain


@pytest.mark.parametrize(
    "setting",
    [
        lambda: torch.device("meta"),
        torch.inference_mode,
        torch.no_grad,
        lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    ],
)
def test_figures_are_the_same_in_every_setting(setting: Callable[[], Any]) -> None:
    class Number(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            k = 2.5
            return x * k

    tally, model = Tally(), Number()
    with ModelTracer(model, ["forward.k", "forward"], post_gather_callbacks=[tally]), setting():
        model(torch.zeros(2, 3, device="cpu"))
    names = {each.name: each for each in tally.summary("captured").names}
    figures = {name: each.parts[0].leaves[0].statistics for name, each in names.items()}
    assert {name: each and (each.low, each.high) for name, each in figures.items()} == {
        "forward": (0, 0),
        "forward.k": (2.5, 2.5),
    }


def test_figures_of_what_a_class_of_its_own_computes() -> None:
    class Doubled(torch.Tensor):
        """Known to be computed with by its own code alone."""

        held: torch.Tensor

        @staticmethod
        def __new__(cls, held: torch.Tensor) -> Doubled:
            made: Any = torch.Tensor._make_wrapper_subclass(cls, held.shape, dtype=held.dtype)
            made.held = held
            return made

        @classmethod
        def __torch_dispatch__(  # type: ignore[override]  # which torch itself calls so
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            def plain(value: Any) -> Any:
                return value.held * 2 if isinstance(value, cls) else value

            return func(*map(plain, args), **(kwargs or {}))

    tally = Tally()
    with CountingKernels():
        tally("a", [[Doubled(torch.ones(2)), 1.5]], [1], [0])
    [name] = tally.summary("captured").names
    assert [leaf.statistics.low for leaf in name.parts[0].leaves if leaf.statistics] == [2, 1.5]


def test_the_users_own_callbacks_are_as_ever(model: Model) -> None:
    def compute(name: str, values: list[Any], iterations: list[int]) -> None:
        values[0].sum()

    tracer = ModelTracer(model, ["forward"], post_gather_callbacks=[compute])
    with tracer, Counting() as functions, CountingKernels() as kernels:
        model(X)
    assert torch.Tensor.sum in functions.calls
    assert torch.ops.aten.sum.default in kernels.calls


def test_asking_which_gradients_a_fused_optimizer_had(model: Model) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=True)
    model(X).sum().backward()
    optimizer.step()
    seen: list[int] = []
    for tracer in (None, ModelTracer(model, ["forward"])):
        with Counting() as functions:
            if tracer is None:
                optimizer.step()
            else:
                with tracer:
                    optimizer.step()
        seen.append(len(functions.calls))
    assert seen[1] == seen[0]
