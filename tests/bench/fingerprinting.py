"""What looking at the value of every call costs: time of a forward pass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

import shapetrace
from shapetrace.events.model import ModuleCall, Op
from tests.bench.contenders import PLAIN, PLAIN_AGAIN, SHAPETRACE, Contender, Forward
from tests.bench.results import Bar, Comparison, Line, Result
from tests.bench.speed import steady_turns
from tests.bench.timing import Slot, Turns, ratio
from tests.bench.workloads import real_work, tiny_encoder

MOST = 1.3


def speed(quick: bool) -> Turns[Result]:
    """The model whose kernels take nearly all the time, and the one that is only overhead."""
    workload = real_work()
    looking = Contender("**shapetrace**, fingerprints", _looking)
    contenders = (PLAIN, PLAIN_AGAIN, SHAPETRACE, looking)
    with workload.setting(), shapetrace.trace(workload.model, fingerprint=True) as trace:
        workload.model(*workload.inputs)
    calls: list[ModuleCall | Op] = [*trace.modules, *trace.ops]
    if not all(call.fingerprints for call in calls if call.outputs):
        raise AssertionError("a call has no fingerprint")
    # One call fills a slot: each is the first of its recording, the dearest there is.
    slot = Slot(seconds=0, fewest=1)
    real = yield from steady_turns(contenders, workload, 2 if quick else 9, slot, warm=0)
    tiny = yield from steady_turns(contenders, tiny_encoder("train"), 3 if quick else 12)
    figure = ratio(real[looking.name], real[PLAIN.name])
    bar = Bar(
        "fingerprints",
        f"d=1024, 12 layers, 512 tokens: {len(calls)} calls",
        f"≤ {MOST} × plain",
        f"{figure.middle:.2f} × ({figure.low:.2f} – {figure.high:.2f})",
        figure.middle <= MOST,
    )
    comparisons = tuple(
        Comparison(
            f"fingerprints, {name}",
            tuple(
                Line(item.title, ratio(seconds[item.name], seconds[PLAIN.name]))
                for item in contenders
            ),
        )
        for name, seconds in (("real work", real), ("tiny encoder, train", tiny))
    )
    return Result((bar,), comparisons)


@contextmanager
def _looking(model: nn.Module) -> Iterator[Forward]:
    with shapetrace.trace(fingerprint=True):
        yield model
