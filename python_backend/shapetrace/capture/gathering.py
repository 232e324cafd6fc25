"""Rounds from all ranks to rank 0.

    gathering = gathering_for_this_process(label="forward, layers.*.forward")
    for entries in gathering.hand_in(round):     # on rank 0, what is complete by now
        ...
    for entries in gathering.finish():           # at the end, the rest
        ...

No collectives: a rank that captures at other times, has fewer batches or is dead would hang all
others, and the order of collectives is the program's. Messages go through the key-value store that
the process group was made with (`sending` and `collecting`), from a thread beside the program.
Nothing here waits for another rank, but for `finish` on rank 0, and that not for ever.
"""

from __future__ import annotations

from typing import Protocol

from shapetrace.capture.results import ResultEntry, Round, join

Gathered = dict[str, ResultEntry]


class Gathering(Protocol):
    """One tracer's way to rank 0."""

    @property
    def rank(self) -> int:
        """Which process this is."""

    @property
    def world_size(self) -> int:
        """How many processes there are."""

    @property
    def is_main(self) -> bool:
        """Whether what is gathered comes out here. May change when a process group is made."""

    @property
    def problems(self) -> list[str]:
        """What the user of this process has to be told, one line each."""

    def hand_in(self, round: Round) -> list[Gathered]:
        """Give a round away; on main, the rounds that are complete by now, in order."""

    def finish(self) -> list[Gathered]:
        """The end: on main, the rest, after waiting for those that live and have not finished."""


class Alone:
    """One process, which is its own rank 0: a round is complete at once."""

    def __init__(self, rank: int = 0, world_size: int = 1) -> None:
        self.rank = rank
        self.world_size = world_size
        self.is_main = True
        self.problems: list[str] = []

    def hand_in(self, round: Round) -> list[Gathered]:
        """The round itself."""
        return [join([round])]

    def finish(self) -> list[Gathered]:
        """Nothing is left."""
        return []


def gathering_for_this_process(label: str = "") -> Gathering:
    """A new gathering: alone, or through the default process group, once there is one.

    Tracers of different processes belong together by their label and by the order in which those
    with this label were made.
    """
    return Alone()
