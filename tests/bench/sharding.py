"""Shards: whether ranks that each write a file pay no more for it than a single rank does."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from shapetrace import H5PYSaverCallback, ModelTracer
from tests.bench.hdf5 import MEMORY
from tests.bench.results import Bar, Comparison, Line, Result
from tests.bench.timing import Seconds, Turn, Turns, in_rounds, ratio

RANKS = 4
MOST_MORE = 1.1
PATHS = ["forward", "layers.*"]
PER_GATHER = 8
CALLS = 4 * PER_GATHER
PLAIN, SHARDS = "plain", "shards"


def scaling(quick: bool) -> Turns[Result]:
    """What a shard costs one rank that runs alone, and four that run at once."""
    where = MEMORY if MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(dir=where) as folder, _ranks(Path(folder)) as ranks:
        contenders = [
            (f"{mode}, {len(some)}", _turn(some, mode))
            for some in (ranks[:1], ranks)
            for mode in (PLAIN, SHARDS)
        ]
        yield from in_rounds(contenders, 1)
        seconds = yield from in_rounds(contenders, 5 if quick else 20)
    alone_plain, alone, together_plain, together = seconds.values()
    costs_alone, costs_together = _costs(alone, alone_plain), _costs(together, together_plain)
    more = ratio(costs_together, costs_alone)
    lines = (
        Line("plain", ratio(alone_plain, alone_plain)),
        Line("**shapetrace**, one rank", ratio(alone, alone_plain)),
        Line(f"**shapetrace**, {RANKS} ranks at once", ratio(together, together_plain)),
    )
    return Result(
        (
            Bar(
                "shards",
                f"{RANKS} ranks at once, each with a file of its own",
                f"≤ {MOST_MORE} × what it costs one rank",
                f"{more.middle:.2f} × ({more.low:.2f} – {more.high:.2f})",
                more.middle <= MOST_MORE,
            ),
        ),
        (Comparison("capturing to shards", lines),),
    )


def _costs(seconds: Seconds, plain: Seconds) -> Seconds:
    return [one / other for one, other in zip(seconds, plain, strict=True) if one and other]


def _turn(ranks: Sequence[subprocess.Popen[str]], mode: str) -> Turn:
    """Some ranks at once, as the seconds that the slowest takes for a call."""

    def turn() -> float:
        for rank in ranks:
            print(mode, file=_end(rank.stdin), flush=True)
        return max(float(_end(rank.stdout).readline()) for rank in ranks)

    return turn


@contextmanager
def _ranks(folder: Path) -> Iterator[list[subprocess.Popen[str]]]:
    ranks = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.bench.sharding", str(folder)],
            env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(RANKS)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(RANKS)
    ]
    try:
        yield ranks
    finally:
        for rank in ranks:
            rank.communicate()


def _end(pipe: Any) -> Any:
    assert pipe is not None
    return pipe


def _be_rank(folder: Path) -> None:
    """Run calls of a model, with a tracer or without, each time a line says so."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = _Stack()
    inputs = torch.randn(64, 256)
    saver = H5PYSaverCallback(folder / "run.h5", shards=True)
    tracer = ModelTracer(model, PATHS, pre_gather_callbacks=[saver], gathering_interval=PER_GATHER)

    def seconds() -> float:
        # The mean: what is written at every eighth call is to weigh in.
        start = time.perf_counter()
        for _ in range(CALLS):
            model(inputs)
        return (time.perf_counter() - start) / CALLS

    with torch.no_grad():
        for mode in map(str.strip, sys.stdin):
            if mode == PLAIN:
                print(seconds(), flush=True)
                continue
            with tracer:
                taken = seconds()
            print(taken, flush=True)
    saver.close()


class _Stack(nn.Module):
    """48 layers, of which six are captured."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(256, 256) for _ in range(6)])
        self.others = nn.ModuleList([nn.Linear(256, 256) for _ in range(42)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in (*self.others, *self.layers):
            x = layer(x).relu()
        return x


if __name__ == "__main__":
    _be_rank(Path(sys.argv[1]))
