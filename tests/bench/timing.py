"""Timing several contenders in turn, so that each is compared with its own neighbours in time."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

Answer = TypeVar("Answer")
Turn: TypeAlias = Callable[[], float]
"""Runs one contender for a while and says how many seconds a call took it."""
Turns: TypeAlias = Generator[Turn, float, Answer]
"""Hands out turns to be run by ``drive``, takes their figures, and has an answer in the end."""
Seconds: TypeAlias = list[float | None]
"""One figure for each round; None where a slow contender sat the round out."""


@dataclass(frozen=True)
class Spread:
    """The quartiles of a figure over the rounds it was measured in."""

    low: float
    middle: float
    high: float


@dataclass(frozen=True)
class Slot:
    """How long one contender is timed each time it is its turn."""

    seconds: float = 0.12
    """Calls are made until this much time has passed ..."""
    fewest: int = 3
    """... and at least so many have been made."""


def drive(turns: Turns[Answer]) -> Answer:
    """Run every turn from here, with as few frames under it as there can be.

    Tools that walk the whole stack at each op pay for every frame of it, ours included.
    """
    try:
        turn = next(turns)
        while True:
            turn = turns.send(turn())
    except StopIteration as end:
        answer: Answer = end.value
        return answer


def in_rounds(
    contenders: Sequence[tuple[str, Turn]],
    rounds: int,
    rounds_of: Mapping[str, int] | None = None,
) -> Turns[dict[str, Seconds]]:
    """Let every contender have its turn once a round: A B C, B C A, C A B, ...

    ``rounds_of`` names those that take part in fewer rounds because a single one takes them long.
    """
    fewer = rounds_of or {}
    seconds: dict[str, Seconds] = {name: [] for name, _ in contenders}
    for number in range(rounds):
        first = number % len(contenders)
        for name, turn in (*contenders[first:], *contenders[:first]):
            if number >= fewer.get(name, rounds):
                seconds[name].append(None)
                continue
            # What the one before left behind is not charged to the next one.
            gc.collect()
            seconds[name].append((yield turn))
    return seconds


def seconds_per_call(call: Callable[..., object], inputs: tuple[object, ...], slot: Slot) -> float:
    """The median time of a call, over as many calls as fit the slot."""
    clock = time.perf_counter
    times: list[float] = []
    end = clock() + slot.seconds
    while len(times) < slot.fewest or clock() < end:
        start = clock()
        call(*inputs)
        times.append(clock() - start)
    return statistics.median(times)


def ratio(seconds: Seconds, base: Seconds) -> Spread:
    """How many times the base a contender took, each round compared within itself."""
    return quartiles([a / b for a, b in zip(seconds, base, strict=True) if a and b])


def quartiles(values: Sequence[float]) -> Spread:
    """The quartiles of some values, which may be a single one."""
    if len(values) == 1:
        return Spread(values[0], values[0], values[0])
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(low, middle, high)
