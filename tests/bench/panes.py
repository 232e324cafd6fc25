"""The Variables pane: how long our texts take, and the debugger's answers with us and without."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch

from shapetrace.panes import presentation
from tests.bench.results import Bar, Result, Table
from tests.bench.timing import Turn, Turns, in_rounds, quartiles, ratio
from tests.support.debug_client import DebugSession, Launch, Script, launch
from tests.support.session_server import SessionServer

PROGRAM = """
import collections, dataclasses, pathlib, types
import torch
from torch import nn

@dataclasses.dataclass
class Options:
    name: str = "small"
    layers: tuple = (1, 2, 3)

class Plain:
    def __init__(self):
        self.options, self.numbers, self.nothing = Options(), list(range(20)), None

def ordinary():
    numbers, names = list(range(100)), {str(number): number for number in range(50)}
    options, path, text, queue = Options(), pathlib.Path("a/b"), "text" * 20, collections.deque([1])
    nested = {"a": [{"b": (1, 2)}] * 5, "c": {1, 2, 3}}
    plain, objects, space = Plain(), [Plain()] * 10, types.SimpleNamespace(a=1, b=[2])
    counts, error, function = collections.Counter("abracadabra"), ValueError("no"), print
    return numbers  # @ordinary

def forward():
    layer = nn.TransformerEncoderLayer(64, 4, batch_first=True)
    layers = nn.ModuleList([nn.Linear(64, 64) for _ in range(12)])
    x = torch.randn(2, 16, 64)
    q, k, v = x @ x.mT, x * 2, x + 1
    hidden, cache = [x] * 12, {"k": k, "v": v}
    loss, mask, scale = x.sum(), torch.ones(16, 16, dtype=torch.bool), 0.125
    batch = {"input_ids": torch.ones(2, 7).long(), "labels": torch.ones(2, 7).long()}
    return x  # @forward

def many():
    for number in range(1000):
        globals()[f"tensor_{number}"] = torch.randn(4, 8)
    return number  # @many

ordinary()
forward()
many()
"""
FRAMES = {
    "ordinary": ("Locals", "19 values without a tensor"),
    "forward": ("Locals", "a forward pass: 15 tensors, modules and containers"),
    "many": ("Globals", "1,000 tensors of 32 numbers"),
}
BAR_MILLISECONDS = 50
ALLOWED = 1.1
"""How much longer an answer may seem to take: two processes are compared on a noisy machine."""


def panes(quick: bool) -> Turns[Result]:
    """Our own time for a thousand tensors; the answers to ``variables`` with us and without."""
    own = yield from _own_time(5 if quick else 50)
    bars = [own]
    rows = []
    for mark, (scope, what) in FRAMES.items():
        with (
            _asked(mark, scope, with_us=False) as plain,
            _asked(mark, scope, with_us=False) as again,
            _asked(mark, scope, with_us=True) as ours,
        ):
            contenders = [("without", plain), ("without, once more", again), ("with", ours)]
            seconds = yield from in_rounds(contenders, 10 if quick else 40)
        spread = ratio(seconds["with"], seconds["without"])
        bars.append(
            Bar(
                "variables at a stop",
                what,
                "no slower than without us",
                f"{spread.middle:.2f} × ({spread.low:.2f} – {spread.high:.2f})",
                spread.middle <= ALLOWED,
            )
        )
        times = [quartiles([each for each in seconds[name] if each]) for name, _ in contenders]
        rows.append((what, *(f"{1000 * each.middle:.1f} ms" for each in times)))
    header = ("frame", "without us", "without us, once more", "with us")
    table = Table("Answers to `variables`", header, tuple(rows))
    return Result(tuple(bars), (), (table,))


def _own_time(rounds: int) -> Turns[Bar]:
    tensors = [torch.randn(4, 8) for _ in range(1000)]
    presentation(tensors[0])

    def turn() -> float:
        start = time.perf_counter()
        for tensor in tensors:
            presentation(tensor)
        return time.perf_counter() - start

    seconds = yield from in_rounds([("own", turn)], rounds)
    spread = quartiles([1000 * each for each in seconds["own"] if each])
    return Bar(
        "pane",
        "our time for 1,000 tensors",
        f"≤ {BAR_MILLISECONDS} ms",
        f"{spread.middle:.1f} ms ({spread.low:.1f} – {spread.high:.1f})",
        spread.middle <= BAR_MILLISECONDS,
    )


@contextmanager
def _asked(mark: str, scope: str, with_us: bool) -> Iterator[Turn]:
    """A program that has stopped at a mark, as what asks for its variables."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        script = Script.write(PROGRAM, folder)
        how = stack.enter_context(SessionServer()).launch() if with_us else Launch()
        session = stack.enter_context(launch(script, how))
        session.break_at(mark)
        session.go()
        reference = session.scope(session.stop().top, scope)
        _ask(session, reference)
        yield lambda: _ask(session, reference)


def _ask(session: DebugSession, reference: int) -> float:
    start = time.perf_counter()
    answer: list[dict[str, Any]] = session.children(reference)
    assert answer
    return time.perf_counter() - start
