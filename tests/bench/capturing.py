"""What capturing values costs: time of a forward pass, and memory of a long run."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch import nn

from shapetrace import ModelTracer
from tests.bench.contenders import PLAIN, PLAIN_AGAIN, Contender, Forward
from tests.bench.memory import MEGABYTE, resident_bytes
from tests.bench.results import Bar, Comparison, Line, Result
from tests.bench.speed import steady_turns
from tests.bench.timing import Turns, ratio
from tests.bench.workloads import tiny_encoder

OUTPUTS = ["forward", "layers.*"]
ELEVEN = [
    *("forward", "forward.output", "layers.*", "layers.*.forward.src", "layers.*.forward.x"),
    *("layers.*._sa_block.x", "layers.*._ff_block.x", "layers.*.linear1"),
    *(f"layers.*.self_attn.forward.{name}" for name in ("query", "key", "attn_output")),
]
VALUES_OF_ELEVEN = 103


def speed(quick: bool) -> Turns[Result]:
    """The work that TensorTracer was measured at, and outputs alone."""
    workload = tiny_encoder("train")
    with ModelTracer(workload.model, ELEVEN) as tracer:
        for _ in range(2):
            workload.model(*workload.inputs)
    values = sum(entry.iterations.count(2) for entry in tracer.results.values())
    if values != VALUES_OF_ELEVEN or tracer.problems:
        raise AssertionError(f"{values} values are captured: {tracer.problems}")
    outputs = Contender("**shapetrace**, 7 outputs", _capturing(OUTPUTS))
    eleven = Contender(f"**shapetrace**, 11 paths, {values} values", _capturing(ELEVEN))
    contenders = (PLAIN, PLAIN_AGAIN, outputs, eleven)
    # A training loop runs for long: CPython has adapted itself to the code that is followed.
    seconds = yield from steady_turns(contenders, workload, 6 if quick else 24, warm=64)
    plain = seconds[PLAIN.name]
    lines = tuple(Line(item.title, ratio(seconds[item.name], plain)) for item in contenders)
    bars = []
    for item, case, most in (
        (outputs, "outputs of the model and its 6 layers", 1.1),
        (eleven, f"11 paths, {values} values (TensorTracer: 7.6 ×)", 1.5),
    ):
        figure = ratio(seconds[item.name], plain)
        bars.append(
            Bar(
                "capturing",
                f"{case}, tiny encoder, train",
                f"≤ {most} × plain",
                f"{figure.middle:.2f} × ({figure.low:.2f} – {figure.high:.2f})",
                figure.middle <= most,
            )
        )
    return Result(tuple(bars), (Comparison("capturing values, tiny encoder, train", lines),))


def memory(quick: bool) -> Result:
    """Ten thousand iterations of which everything is captured, gathered and let go."""
    iterations = 1_000 if quick else 10_000
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
    tracer = ModelTracer(
        model,
        ["forward", "*.forward.input", "*"],
        gathering_interval=10,
        post_gather_callbacks=[_let_go],
    )
    with tracer:
        for _ in range(500):
            model(torch.randn(8, 64))
        gc.collect()
        before = resident_bytes()
        for _ in range(iterations):
            model(torch.randn(8, 64))
        gc.collect()
        grown = resident_bytes() - before
    return Result(
        (
            Bar(
                "capturing",
                f"memory, {iterations:,} iterations, gathered every 10",
                "flat (≤ 1 MB more, resident)",
                f"{grown / MEGABYTE:.1f} MB",
                grown <= MEGABYTE,
            ),
        )
    )


def _capturing(paths: list[str]) -> Callable[[nn.Module], AbstractContextManager[Forward]]:
    @contextmanager
    def watching(model: nn.Module) -> Iterator[Forward]:
        with ModelTracer(model, paths, post_gather_callbacks=[_let_go]):
            yield model

    return watching


def _let_go(name: str, values: list[Any], iterations: list[int], ranks: list[int]) -> None:
    """What a callback does that has saved the values elsewhere."""
    for taken in (values, iterations, ranks):
        taken.clear()
