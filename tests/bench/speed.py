"""How much longer a forward pass takes while it is watched."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from tests.bench.contenders import (
    EMPTY,
    PEERS,
    PLAIN,
    PLAIN_AGAIN,
    SETTLED,
    SHAPETRACE,
    SHAPETRACE_ATEN,
    TORCHLENS,
    Contender,
)
from tests.bench.results import Bar, Comparison, Line, Result
from tests.bench.timing import (
    Seconds,
    Slot,
    Spread,
    Turn,
    Turns,
    in_rounds,
    ratio,
    seconds_per_call,
)
from tests.bench.workloads import Workload, real_work, tiny_encoder

OURS = (PLAIN, PLAIN_AGAIN, EMPTY, SHAPETRACE, SHAPETRACE_ATEN)

# The shapes have settled long before this many passes; the rest is what is measured. One pass in
# 64 is looked at even then, so a block holds two of those.
PASSES_TO_SETTLE = 24
PASSES_IN_A_BLOCK = 128


def tiny_encoder_train(quick: bool) -> Turns[Result]:
    """The worst case, with every peer beside it."""
    return _tiny_encoder("train", (*OURS, *PEERS), quick)


def tiny_encoder_eval(quick: bool) -> Turns[Result]:
    """The worst case without gradients, where plain PyTorch runs a layer as one kernel."""
    return _tiny_encoder("eval, fused path", (*OURS, *PEERS), quick)


def tiny_encoder_unfused(quick: bool) -> Turns[Result]:
    """The worst of the worst: no gradients to be kept, and every call made from Python."""
    return _tiny_encoder("eval, fused path off", OURS, quick)


def torchlens(quick: bool) -> Turns[Result]:
    """The peer that changes torch for the rest of its process."""
    if not TORCHLENS.available:
        absent = Line(f"{TORCHLENS.name}: not installed")
        return Result(comparisons=(Comparison("tiny encoder, train, TorchLens", (absent,)),))
    workload = tiny_encoder("train")
    rounds = 2 if quick else 8
    # Plain and the empty mode are timed before it is first used: afterwards they are slower.
    before = yield from steady_turns((PLAIN, EMPTY), workload, rounds)
    after = yield from steady_turns((PLAIN, TORCHLENS), workload, rounds)
    plain, empty = before[PLAIN.name], before[EMPTY.name]
    lines = (
        _line(PLAIN.name, plain, plain, empty),
        _line(EMPTY.name, empty, plain, empty),
        _line(TORCHLENS.title, after[TORCHLENS.name], plain, empty),
        _line("plain, after TorchLens has run", after[PLAIN.name], plain, empty),
    )
    return Result(comparisons=(Comparison("tiny encoder, train, TorchLens", lines),))


def real_work_row(quick: bool) -> Turns[Result]:
    """A forward pass whose kernels take nearly all the time."""
    workload = real_work()
    contenders = (PLAIN, PLAIN_AGAIN, SHAPETRACE)
    # One call fills a slot: each is the first of its recording, the dearest there is.
    slot = Slot(seconds=0, fewest=1)
    yield from steady_turns((PLAIN,), workload, 1, slot, warm=0)
    seconds = yield from steady_turns(contenders, workload, 2 if quick else 9, slot, warm=0)
    plain = seconds[PLAIN.name]
    lines = tuple(_line(item.title, seconds[item.name], plain) for item in contenders)
    figure = ratio(seconds[SHAPETRACE.name], plain)
    return Result(
        bars=(_over_plain("real work", "d=1024, 12 layers, 512 tokens", 0.03, figure),),
        comparisons=(Comparison("real work", lines),),
    )


def settled(quick: bool) -> Turns[Result]:
    """The tiny encoder once its shapes have stopped changing."""
    bars: list[Bar] = []
    comparisons: list[Comparison] = []
    contenders = (PLAIN, PLAIN_AGAIN, SETTLED)
    for setting in ("train", "eval, fused path"):
        workload = tiny_encoder(setting)
        turns = [(item.name, _block(item, workload)) for item in contenders]
        seconds = yield from in_rounds(turns, 4 if quick else 24)
        plain = seconds[PLAIN.name]
        lines = tuple(_line(item.title, seconds[item.name], plain) for item in contenders)
        comparisons.append(Comparison(f"settled, {setting}", lines))
        figure = ratio(seconds[SETTLED.name], plain)
        bars.append(_over_plain("settled", f"tiny encoder, {setting}", 0.02, figure))
    return Result(tuple(bars), tuple(comparisons))


def _tiny_encoder(setting: str, candidates: Sequence[Contender], quick: bool) -> Turns[Result]:
    workload = tiny_encoder(setting)
    contenders = [item for item in candidates if item.available]
    rounds, rounds_of_slow = (6, 1) if quick else (21, 3)
    slow = {item.name: rounds_of_slow for item in contenders if item.slow}
    # Each is used once before anything is timed: some import much of torch at their first call.
    yield from in_rounds([(item.name, _first_pass(item, workload)) for item in contenders], 1)

    steady = yield from steady_turns(contenders, workload, rounds, rounds_of=slow)
    first = yield from in_rounds(
        [(item.name, _first_pass(item, workload)) for item in contenders], rounds // 3, slow
    )
    plain, empty = steady[PLAIN.name], steady[EMPTY.name]
    lines = tuple(
        Line(
            item.title,
            ratio(steady[item.name], plain),
            ratio(steady[item.name], empty),
            ratio(first[item.name], first[PLAIN.name]),
        )
        for item in contenders
    ) + tuple(Line(f"{item.name}: not installed") for item in candidates if not item.available)
    figure = ratio(steady[SHAPETRACE.name], empty)
    bar = Bar(
        "tiny encoder",
        setting,
        "≤ 1.5 × an empty mode (aim 1.25)",
        f"{figure.middle:.2f} × ({figure.low:.2f} – {figure.high:.2f})",
        figure.middle <= 1.5,
    )
    return Result((bar,), (Comparison(f"tiny encoder, {setting}", lines),))


def steady_turns(
    contenders: Sequence[Contender],
    workload: Workload,
    rounds: int,
    slot: Slot | None = None,
    *,
    warm: int = 2,
    rounds_of: Mapping[str, int] | None = None,
) -> Turns[dict[str, Seconds]]:
    """Repeated calls in one recording, as in a training loop."""

    def turn_of(contender: Contender) -> Turn:
        def turn() -> float:
            inputs = workload.inputs
            with workload.setting(), contender.watching(workload.model) as forward:
                for _ in range(warm):
                    forward(*inputs)
                return seconds_per_call(forward, inputs, slot or Slot())

        return turn

    return in_rounds([(item.name, turn_of(item)) for item in contenders], rounds, rounds_of)


def _first_pass(contender: Contender, workload: Workload) -> Turn:
    """One call in a recording of its own, again and again."""

    def record_one_pass() -> None:
        with contender.watching(workload.model) as forward:
            forward(*workload.inputs)

    def turn() -> float:
        with workload.setting():
            return seconds_per_call(record_one_pass, (), Slot())

    return turn


def _block(contender: Contender, workload: Workload) -> Turn:
    """The mean of many calls in a row, so that the passes that are sampled weigh in."""

    def turn() -> float:
        inputs = workload.inputs
        start = time.perf_counter()
        with workload.setting(), contender.watching(workload.model) as forward:
            # One loop for both, as the same call from another line would be something new to see.
            for number in range(PASSES_TO_SETTLE + PASSES_IN_A_BLOCK):
                if number == PASSES_TO_SETTLE:
                    start = time.perf_counter()
                forward(*inputs)
            return (time.perf_counter() - start) / PASSES_IN_A_BLOCK

    return turn


def _line(title: str, seconds: Seconds, plain: Seconds, empty: Seconds | None = None) -> Line:
    return Line(title, ratio(seconds, plain), ratio(seconds, empty) if empty else None)


def _over_plain(row: str, case: str, bar: float, figure: Spread) -> Bar:
    return Bar(
        row,
        case,
        f"≤ {bar:.0%} over plain",
        f"{figure.middle - 1:+.1%} ({figure.low - 1:+.1%} … {figure.high - 1:+.1%})",
        figure.middle - 1 <= bar,
    )
