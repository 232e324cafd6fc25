"""Brings rounds from all ranks to rank 0.

gathering = gathering_for_this_process(label="forward, layers.*.forward")
    for entries in gathering.hand_in(round):     # on rank 0, what is complete by now
        ...
    for entries in gathering.finish():           # at the end, the rest
        ...

No collectives: a rank that captures at other times, has fewer batches or is dead would hang all
others, and the order of collectives belongs to the program. Messages go through the process group's
key-value store (`sending` and `collecting`), on a thread of their own. Nothing here waits for
another rank, except `finish` on rank 0, and that with a time limit.
"""

from __future__ import annotations

import atexit
import collections
import hashlib
import os
import weakref
from typing import Any, Protocol

from shapetrace._asynchronous import is_asynchronous
from shapetrace.capture.results import ResultEntry, Round
from shapetrace.ranks.collecting import Collector
from shapetrace.ranks.groups import default_group
from shapetrace.ranks.liveness import Patience
from shapetrace.ranks.sending import Sender
from shapetrace.ranks.sizes import size_of

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
        """One line for each problem to report in this process.

        Problems that other ranks can send to rank 0 are in the list there; theirs has only the
        rest.
        """

    def hand_in(self, round: Round) -> list[Gathered]:
        """Hand in a round; returns, on main, the rounds that are complete by now, in order."""

    def finish(self) -> list[Gathered]:
        """End the gathering; returns, on main, the rest, after waiting for live ranks."""


class Alone:
    """One process, which is its own rank 0: a round is complete at once."""

    def __init__(self, rank: int = 0, world_size: int = 1) -> None:
        self.rank = rank
        self.world_size = world_size
        self.is_main = True
        self.problems: list[str] = []

    def hand_in(self, round: Round) -> list[Gathered]:
        """The round itself."""
        round.rank = self.rank
        for entry in round.entries.values():
            iterations, ranks = entry.iterations, entry.ranks
            if len(ranks) < len(iterations):
                ranks.extend([self.rank] * (len(iterations) - len(ranks)))
        return [round.entries]

    def finish(self) -> list[Gathered]:
        """Nothing is left."""
        return []


def gathering_for_this_process(label: str = "", patience: Patience | None = None) -> Gathering:
    """A new gathering: alone, or through the default process group, once there is one.

    Tracers of different processes are matched by label (what they trace) and by the order in which
    those with this label began, so that a tracer that only some ranks make is not confused with
    another. Call it when a trace begins.
    """
    number = _begun[label]
    _begun[label] += 1
    return _Deciding(label, number, patience)


class _Deciding:
    """Works alone until there is a process group, then through its store.

    If a launcher has set the number of processes, waits for the group, within bounds.
    """

    def __init__(self, label: str, number: int, patience: Patience | None) -> None:
        self._label, self._number, self._patience = label, number, patience
        self._process = os.getpid()
        self._early: list[Round] = []
        self._alone = Alone(*_of_environment())
        self._group: Sender | Collector | None = None
        self._store: Any = None
        self._problems: list[str] = []
        self._gave_up = False
        """The launcher announced other processes, but no group was made: each keeps its own."""
        self._is_over = False
        self._decide_if_possible()

    @property
    def rank(self) -> int:
        return (self._group or self._alone).rank

    @property
    def world_size(self) -> int:
        return (self._group or self._alone).world_size

    @property
    def is_main(self) -> bool:
        if self._group is not None:
            return self._group.is_main
        return self._alone.rank == 0 or self._alone.world_size == 1 or self._gave_up

    @property
    def problems(self) -> list[str]:
        return [*self._problems, *(self._group.problems if self._group else [])]

    def hand_in(self, round: Round) -> list[Gathered]:
        if self._process != os.getpid():
            return []  # A fork has none of the threads.
        if self._is_over:
            self._say("what was captured after the end of a trace is lost")
            return []
        try:
            return self._hand_in(round)
        except Exception as error:
            if is_asynchronous(error):
                raise
            self._early = []
            self._say(f"round {round.number} ({round.mode}) is lost: {_line(error)}")
            return []

    def _hand_in(self, round: Round) -> list[Gathered]:
        self._decide()
        self._early.append(round)
        if self._group is not None:
            return self._hand_in_early(self._group)
        if self._alone.world_size > 1 and not self._is_too_much():
            return []
        return self._gather_alone()

    def finish(self) -> list[Gathered]:
        if self._process != os.getpid() or self._is_over:
            return []
        self._decide_if_possible()
        self._is_over = True
        if self._group is None:
            return self._gather_alone()
        gathered = self._hand_in_early(self._group) + self._group.finish()
        _unfinished.discard(self._group)
        if isinstance(self._group, Collector):
            _absent.setdefault(self._store, {})[self._label] = self._group.absent
        self._store = None  # It may listen on a port that the program needs for its next group.
        return gathered

    def _decide_if_possible(self) -> None:
        try:
            self._decide()
        except Exception as error:
            if is_asynchronous(error):
                raise
            self._say(f"each process keeps what it captures: {_line(error)}")

    def _decide(self) -> None:
        if self._group is not None or self._is_over or (found := default_group()) is None:
            return
        if found.store is None or found.world_size == 1:
            self._alone.rank, self._alone.world_size = found.rank, 1
            if found.trouble:
                self._say(found.trouble)
            return
        self._store = found.store
        digest = hashlib.sha256(self._label.encode()).hexdigest()[:16]
        prefix = f"shapetrace/{digest}/{self._number}"
        if found.rank == 0:
            self._group = Collector(
                found.store,
                prefix,
                found.world_size,
                self._patience,
                _absent.get(found.store, {}).get(self._label, frozenset()),
            )
        else:
            self._group = Sender(found.store, prefix, found.rank, found.world_size, self._patience)
        _unfinished.add(self._group)
        # At exit, `_at_exit` does this and waits.
        weakref.finalize(self, _let_go, self._group).atexit = False

    def _hand_in_early(self, group: Sender | Collector) -> list[Gathered]:
        rounds, self._early = self._early, []
        gathered: list[Gathered] = []
        for round in rounds:
            round.rank = group.rank
            gathered += group.hand_in(round)
        return gathered

    def _is_too_much(self) -> bool:
        return sum(size_of(round.entries) for round in self._early) > _EARLY

    def _gather_alone(self) -> list[Gathered]:
        rounds, self._early = self._early, []
        if rounds and self._alone.world_size > 1:
            self._gave_up = True
            self._say(
                "there is no process group: each process keeps what it captures. Call "
                "torch.distributed.init_process_group() before, to gather it on rank 0."
            )
        return [gathered for round in rounds for gathered in self._alone.hand_in(round)]

    def _say(self, text: str) -> None:
        if text not in self._problems:
            self._problems.append(text)


_EARLY = 64 << 20
"""Bytes to keep while waiting for a process group."""

_begun: collections.Counter[str] = collections.Counter()
_absent: weakref.WeakKeyDictionary[Any, dict[str, frozenset[int]]] = weakref.WeakKeyDictionary()
"""Which ranks of a process group, which its store is known by, took no part in the last trace of a
label; the next one does not wait for them."""
_unfinished: set[Sender | Collector] = set()


def _let_go(group: Sender | Collector) -> None:
    # In a fork nothing is unfinished, and the locks are as they were.
    if group in _unfinished:
        _unfinished.discard(group)
        group.let_go()


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unfinished.clear)


@atexit.register
def _at_exit() -> None:
    """End the threads: one that returns from the store after Python's end aborts the process."""
    for group in list(_unfinished):
        group.let_go()
    for group in list(_unfinished):
        group.wait(5.0)


def _of_environment() -> tuple[int, int]:
    """Rank and world size as set by torchrun and the like."""
    rank, size = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    if rank.isdecimal() and size.isdecimal() and int(rank) < int(size):
        return int(rank), int(size)
    return 0, 1
