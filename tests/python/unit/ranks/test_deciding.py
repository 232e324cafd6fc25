"""When a gathering is alone and when it goes through a process group."""

from __future__ import annotations

import collections
import gc
import os
import threading
import warnings
import weakref
from typing import Any

import pytest
from torch.distributed import HashStore  # type: ignore[attr-defined]

from shapetrace.capture.results import ResultEntry, Round
from shapetrace.ranks import gathering as module
from shapetrace.ranks.collecting import Collector
from shapetrace.ranks.gathering import gathering_for_this_process
from shapetrace.ranks.groups import RankGroup
from shapetrace.ranks.liveness import Patience, RankProcess, Standing

PATIENCE = Patience(beat=0.02, look=0.01)


def a_round(number: int, value: Any = "value") -> Round:
    return Round(number, 0, "train", {"x": ResultEntry([number], [], [value])})


class Processes:
    """Makes this process one rank after the other."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, world_size: int = 2) -> None:
        self._monkeypatch = monkeypatch
        self._world_size = world_size
        self.store: Any = HashStore()
        monkeypatch.setattr(module, "_begun", collections.Counter())

    def be(self, rank: int, **group: Any) -> None:
        found = RankGroup(rank, self._world_size, **({"store": self.store} | group))
        self._monkeypatch.setattr(module, "default_group", lambda: found)
        self._monkeypatch.setattr(module, "_begun", collections.Counter())


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Processes:
    return Processes(monkeypatch)


def launched(monkeypatch: pytest.MonkeyPatch, rank: int, world_size: int) -> None:
    monkeypatch.setenv("RANK", str(rank))
    monkeypatch.setenv("WORLD_SIZE", str(world_size))


def test_gatherings_of_one_label_meet_in_the_order_of_their_beginning(
    processes: Processes,
) -> None:
    processes.be(0)
    mains = [gathering_for_this_process(label, PATIENCE) for label in ("a", "a", "b")]
    assert [main.is_main for main in mains] == [True] * 3
    processes.be(1)
    others = [gathering_for_this_process(label, PATIENCE) for label in ("b", "a", "a")]
    assert [other.is_main for other in others] == [False] * 3
    for other, value in zip(others, ("b", "first a", "second a"), strict=True):
        other.hand_in(a_round(1, value))
        other.finish()
    gathered = [main.finish()[0]["x"] for main in mains]
    assert [entry.values for entry in gathered] == [["first a"], ["second a"], ["b"]]
    assert gathered[0].ranks == [1]


def test_who_took_no_part_is_known_of_its_own_process_group(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    known: list[frozenset[int]] = []

    class Noting(Collector):
        def __init__(self, *given: Any) -> None:
            known.append(given[-1])
            super().__init__(*given)

    monkeypatch.setattr(module, "Collector", Noting)
    for store in (processes.store, processes.store, HashStore()):
        processes.store = store
        processes.be(0)
        gathering_for_this_process("", Patience(absent=0.0)).finish()
    assert known == [set(), {1}, set()]


def test_a_gathering_that_is_over_lets_the_store_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that lives on keeps its port: the program could make no other group there."""
    groups = [RankGroup(0, 2, HashStore())]
    store = weakref.ref(groups[0].store)
    monkeypatch.setattr(module, "default_group", groups.pop)
    monkeypatch.setattr(module, "_begun", collections.Counter())
    gathering = gathering_for_this_process("", Patience(absent=0.0))
    assert store() is not None
    gathering.finish()
    assert store() is None


def test_rounds_wait_for_a_process_group_that_a_launcher_promises(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched(monkeypatch, 1, 2)
    other = gathering_for_this_process("", Patience(absent=0.0))
    assert (other.rank, other.world_size, other.is_main) == (1, 2, False)
    assert other.hand_in(a_round(1)) == []
    processes.be(1)
    assert other.finish() == []
    processes.be(0)
    (entries,) = gathering_for_this_process("", PATIENCE).finish()
    assert entries["x"].ranks == [1]


def test_without_a_process_group_each_process_keeps_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launched(monkeypatch, 1, 2)
    gathering = gathering_for_this_process()
    assert gathering.hand_in(a_round(1)) == []
    (entries,) = gathering.finish()
    assert entries["x"].ranks == [1]
    assert gathering.is_main
    (problem,) = gathering.problems
    assert "Call torch.distributed.init_process_group() before" in problem


def test_only_so_much_waits_for_a_process_group(monkeypatch: pytest.MonkeyPatch) -> None:
    launched(monkeypatch, 1, 2)
    monkeypatch.setattr(module, "_EARLY", 5)
    gathering = gathering_for_this_process()
    assert gathering.hand_in(a_round(1, "12345")) == []
    assert len(gathering.hand_in(a_round(2, "6"))) == 2
    assert gathering.hand_in(a_round(3, "7")) == []


def test_a_group_without_a_store_is_told_of(processes: Processes) -> None:
    processes.be(1, store=None, trouble="no store")
    gathering = gathering_for_this_process()
    (entries,) = gathering.hand_in(a_round(1))
    assert entries["x"].ranks == [1]
    assert gathering.problems == ["no store"]
    assert gathering.finish() == []


@pytest.mark.slow
def test_a_gathering_that_nobody_holds_ends(processes: Processes) -> None:
    processes.be(0)
    main = gathering_for_this_process("", PATIENCE)
    processes.be(1)
    other = gathering_for_this_process("", PATIENCE)
    other.hand_in(a_round(1))
    del other
    gc.collect()
    assert len(main.finish()) == 1
    assert main.problems == []


def test_a_fork_has_nothing_to_say(processes: Processes) -> None:
    processes.be(0)
    main = gathering_for_this_process("", Patience(absent=0.0))
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Newer Pythons warn of forks where there are threads.
        child = os.fork()
    if child == 0:
        told = repr((main.hand_in(a_round(1)), main.finish()))
        os.write(writing, told.encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 100) == b"([], [])"
    os.close(reading)
    os.close(writing)
    assert main.finish() == []


def test_a_fault_of_ours_is_a_problem_and_no_exception(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise RuntimeError("broken\nin two lines")

    monkeypatch.setattr(module, "default_group", broken)
    gathering = gathering_for_this_process()
    assert gathering.hand_in(a_round(4)) == []
    assert gathering.finish() == []
    assert gathering.problems == [
        "each process keeps what it captures: RuntimeError: broken",
        "round 4 (train) is lost: RuntimeError: broken",
    ]


def test_a_thread_that_stands_still_is_seen() -> None:
    standing, event = Standing(), threading.Event()
    thread = threading.Thread(target=event.wait)
    thread.start()
    assert thread.ident is not None
    standing.watch(thread.ident)
    while (looked := standing.look())[0] <= 0:
        pass
    assert looked[1].startswith("threading.py:")
    event.set()
    thread.join()
    assert standing.look() == (0.0, "")


def test_processes_elsewhere_are_not_taken_for_those_here() -> None:
    here = RankProcess.this()
    assert RankProcess.from_json(here.to_json().encode()) == here
    assert not here.is_known_to_have_ended(here)
    assert RankProcess(here.place, here.pid, "long ago").is_known_to_have_ended(here)
    assert not RankProcess("elsewhere", here.pid, "long ago").is_known_to_have_ended(here)
    assert not RankProcess("", 1 << 30, "").is_known_to_have_ended(RankProcess("", 1, ""))
