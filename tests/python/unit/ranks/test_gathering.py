"""Several ranks in one process: each has its end of a store that all of them share."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.distributed import HashStore, Store  # type: ignore[attr-defined]

from shapetrace.capture.results import ResultEntry, Round
from shapetrace.ranks import collecting, sending
from shapetrace.ranks.collecting import Collector
from shapetrace.ranks.gathering import Alone, gathering_for_this_process
from shapetrace.ranks.liveness import Patience, RankProcess
from shapetrace.ranks.mail import CHUNK
from shapetrace.ranks.sending import Sender

WITHIN = 60.0
STATE = '{"beat": 1, "sent": 0, "finished": false, "still": 0, "where": ""}'
PATIENCE = Patience(absent=WITHIN, beat=0.02, look=0.01, last_words=0.05)


def a_round(number: int, rank: int, *values: Any, name: str = "x", mode: Any = "train") -> Round:
    values = values or (f"{rank}:{number}",)
    return Round(number, rank, mode, {name: ResultEntry([number] * len(values), [], list(values))})


def values(gathered: list[dict[str, ResultEntry]], name: str = "x") -> list[list[Any]]:
    return [entries[name].values for entries in gathered if name in entries]


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.fixture
def store() -> Any:
    return HashStore()


def collector(store: Any, world_size: int = 2, **patience: float) -> Collector:
    return Collector(store, "p", world_size, Patience(**(_patience() | patience)))


def sender(store: Any, rank: int = 1, world_size: int = 2, **patience: float) -> Sender:
    return Sender(store, "p", rank, world_size, Patience(**(_patience() | patience)))


def _patience() -> dict[str, float]:
    return {name: getattr(PATIENCE, name) for name in Patience.__slots__}


def test_alone_a_round_is_complete_at_once() -> None:
    gathering = gathering_for_this_process()
    assert (gathering.rank, gathering.world_size, gathering.is_main) == (0, 1, True)
    (entries,) = gathering.hand_in(a_round(1, 0, "a", "b"))
    assert entries["x"] == ResultEntry([1, 1], [0, 0], ["a", "b"])
    assert gathering.finish() == gathering.finish() == []
    assert gathering.problems == []
    assert Alone(3, 8).hand_in(a_round(1, 3))[0]["x"].ranks == [3]


def test_each_round_has_rank_0s_block_first(store: Any) -> None:
    main = collector(store, 3)
    others = [sender(store, rank, 3) for rank in (2, 1)]
    for number in (1, 2):
        for other in others:
            assert other.hand_in(a_round(number, other.rank)) == []
    for other in others:
        assert other.finish() == other.finish() == []
    gathered = [*main.hand_in(a_round(1, 0)), *main.hand_in(a_round(2, 0)), *main.finish()]
    assert values(gathered) == [["0:1", "1:1", "2:1"], ["0:2", "1:2", "2:2"]]
    assert gathered[0]["x"].ranks == [0, 1, 2]
    assert gathered[1]["x"].iterations == [2, 2, 2]
    assert main.finish() == []
    assert [*main.problems, *others[0].problems, *others[1].problems] == []


def test_complete_rounds_come_before_the_end(store: Any) -> None:
    main, other = collector(store), sender(store)
    assert main.hand_in(a_round(1, 0)) == []
    other.hand_in(a_round(1, 1))
    gathered: list[Any] = []
    numbers = iter(range(2, 10**6))

    def has_come() -> bool:
        gathered.extend(main.hand_in(a_round(next(numbers), 0)))
        return bool(gathered)

    until(has_come)
    assert values(gathered) == [["0:1", "1:1"]]
    other.finish()
    assert values(main.finish())[0] == ["0:2"]


def test_the_end_waits_for_ranks_that_are_slower(store: Any) -> None:
    main, other = collector(store), sender(store)
    main.hand_in(a_round(1, 0))
    gathered: list[Any] = []
    thread = threading.Thread(target=lambda: gathered.extend(main.finish()))
    thread.start()
    for number in range(1, 4):
        other.hand_in(a_round(number, 1))
    assert thread.is_alive()
    other.finish()
    thread.join(WITHIN)
    assert values(gathered) == [["0:1", "1:1"], ["1:2"], ["1:3"]]


def test_names_and_counts_may_differ(store: Any) -> None:
    main, other = collector(store), sender(store)
    other.hand_in(a_round(1, 1, "only here", name="y"))
    other.hand_in(a_round(2, 1, "a", "b", "c"))
    other.finish()
    first, second = *main.hand_in(a_round(1, 0)), *main.hand_in(a_round(2, 0)), *main.finish()
    assert first["y"] == ResultEntry([1], [1], ["only here"])
    assert second["x"] == ResultEntry([2, 2, 2, 2], [0, 1, 1, 1], ["0:2", "a", "b", "c"])


def test_tensors_of_every_dtype_and_containers_arrive(store: Any) -> None:
    main, other = collector(store), sender(store)
    sent: dict[str, Any] = {
        "f8": torch.arange(4).to(torch.float8_e4m3fn),
        "nested": [torch.ones(2, 3, dtype=torch.bfloat16), {"k": (None, 1.5, "text")}],
    }
    other.hand_in(a_round(1, 1, sent))
    other.finish()
    ((arrived,),) = values(main.finish())
    assert torch.equal(arrived["f8"].view(torch.uint8), sent["f8"].view(torch.uint8))
    assert torch.equal(arrived["nested"][0], sent["nested"][0])
    assert arrived["nested"][1] == {"k": (None, 1.5, "text")}


def test_large_values_go_in_chunks_and_leave_nothing_behind(store: Any) -> None:
    main, other = collector(store), sender(store)
    value = torch.arange(CHUNK)  # eight chunks and some
    for number in range(3):
        other.hand_in(a_round(number, 1, value + number))
    other.finish()
    gathered = main.finish()
    assert all(torch.equal(of[0], value + number) for number, of in enumerate(values(gathered)))
    assert store.num_keys() == 2  # where it is, and in what state


def test_chunks_are_of_one_size_but_the_last() -> None:
    pieces = [b"", b"a" * 10, b"b" * CHUNK * 2, b"c" * 5, b"d" * (CHUNK - 15), b"e"]
    made = [b"".join(chunk) for chunk in sending.chunks(pieces)]
    assert [len(chunk) for chunk in made] == [CHUNK] * 3 + [1]
    assert b"".join(made) == b"".join(pieces)
    assert list(sending.chunks([b""])) == []


def test_a_full_store_makes_nobody_wait(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "room_in_store", lambda world_size: CHUNK)
    other = sender(store)
    value = torch.zeros(CHUNK, dtype=torch.uint8)
    for number in range(1, 9):
        other.hand_in(a_round(number, 1, value))
    until(lambda: store.check(["p/chunk/1/0"]))
    assert not store.check(["p/chunk/1/2"])
    main = collector(store)
    until(lambda: store.check(["p/taken/1"]) and store.get("p/taken/1") == b"16")
    other.finish()
    assert len(main.finish()) == 8


def test_the_end_puts_everything_into_the_store(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rank 0 may be waiting for this rank by now."""
    monkeypatch.setattr(sending, "room_in_store", lambda world_size: CHUNK)
    monkeypatch.setattr(collecting, "room_in_store", lambda world_size: CHUNK)
    main, other = collector(store), sender(store)
    for number in range(8):
        other.hand_in(a_round(number, 1, torch.zeros(CHUNK, dtype=torch.uint8)))
    other.finish()
    assert other.problems == []
    assert len(main.finish()) == 8


def test_what_cannot_be_pickled_is_left_out_and_told_on_rank_0(store: Any) -> None:
    main, other = collector(store), sender(store)
    other.hand_in(a_round(1, 1, "good", lambda: None, "better"))
    other.hand_in(a_round(2, 1, lambda: None))
    other.finish()
    first, second = main.finish()
    assert first["x"].values == ["good", "better"]
    assert first["x"].iterations == [1, 1]
    assert second["x"] == ResultEntry()
    (problem,) = main.problems
    assert problem.startswith("rank 1: values of 'x' were left out, they cannot be sent to rank 0")
    assert other.problems == []


def test_a_rank_that_takes_no_part_is_not_waited_for_long(store: Any) -> None:
    main = collector(store, 3, absent=0.0)
    assert values([*main.hand_in(a_round(1, 0)), *main.finish()]) == [["0:1"]]
    assert main.problems == ["ranks 1, 2 have not traced this model"]
    assert main.absent == {1, 2}


def test_a_rank_that_begins_late_loses_nothing(store: Any) -> None:
    main = collector(store, absent=0.0)
    gathered: list[Any] = []
    numbers = iter(range(1, 10**6))

    def is_complete() -> bool:
        gathered.extend(main.hand_in(a_round(next(numbers), 0)))
        return bool(gathered)

    until(is_complete)
    other = sender(store)
    other.hand_in(a_round(1, 1))
    other.finish()
    gathered += main.finish()
    assert [value for block in values(gathered) for value in block].count("1:1") == 1
    assert main.problems == ["rank 1 was late: values of it are in later rounds"]


def test_rank_0_that_takes_no_part_is_told_of(store: Any) -> None:
    other = sender(store, absent=0.0)
    other.hand_in(a_round(1, 1))
    other.finish()
    (problem,) = other.problems
    assert problem.startswith("rank 1: rank 0 has not begun to gather yet")


def test_a_process_that_dies_is_missed_at_once(store: Any) -> None:
    main = collector(store, absent=WITHIN)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        identity = RankProcess(RankProcess.this().place, process.pid, _started(process.pid))
        store.set("p/state/1", STATE)
        store.set("p/here/1", identity.to_json())
        assert main.hand_in(a_round(1, 0)) == []
        process.kill()
        gathered = main.finish()  # Before its parent has asked for its status: a zombie.
    assert values(gathered) == [["0:1"]]
    assert main.problems == ["rank 1 has died before its first round"]


def _started(pid: int) -> str:
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[19].decode()


def test_a_process_elsewhere_is_missed_when_it_falls_silent(store: Any) -> None:
    store.set("p/state/1", STATE)
    store.set("p/here/1", RankProcess("another machine", 1, "1").to_json())
    main = collector(store, silent=0.05)
    assert values([*main.hand_in(a_round(1, 0)), *main.finish()]) == [["0:1"]]
    assert main.problems == ["rank 1 has not been heard of for 0 s, before its first round"]


def test_rank_0_that_died_makes_nobody_wait(store: Any) -> None:
    store.set(
        "p/here/0",
        RankProcess(RankProcess.this().place, RankProcess.this().pid, "long ago").to_json(),
    )
    other = sender(store)
    other.hand_in(a_round(1, 1))
    other.finish()
    (problem,) = other.problems
    assert problem.startswith("rank 1: rank 0 has died; ")


def test_a_rank_that_waits_for_rank_0_itself_is_given_up(store: Any) -> None:
    main = collector(store, still=0.2)
    event = threading.Event()
    others: list[Sender] = []

    def standing() -> None:
        others.append(sender(store, still=0.2))
        others[0].hand_in(a_round(1, 1))
        event.wait()

    thread = threading.Thread(target=standing)
    thread.start()
    gathered = [*main.hand_in(a_round(1, 0)), *main.finish()]
    event.set()
    thread.join(WITHIN)
    others[0].finish()
    assert values(gathered) == [["0:1", "1:1"]]
    (problem,) = main.problems
    assert problem.startswith("rank 1 has stood at threading.py:")


def test_a_store_that_is_gone_ends_the_gathering() -> None:
    class Gone(Store):
        def check(self, keys: list[str]) -> bool:
            raise RuntimeError("Connection reset by peer")

        def set(self, key: str, value: Any) -> None:
            raise RuntimeError("Connection reset by peer")

    gone: Any = Gone()
    main, other = collector(gone), sender(gone)
    assert values([*main.hand_in(a_round(1, 0)), *main.finish()]) == [["0:1"]]
    other.hand_in(a_round(1, 1))
    other.finish()
    for end in (main, other):
        (problem,) = end.problems
        assert "the process group's key-value store is gone (" in problem
        assert "Connection reset by peer" in problem


def test_what_comes_after_the_end_is_said(store: Any) -> None:
    main, other = collector(store), sender(store)
    other.finish()
    main.finish()
    assert main.hand_in(a_round(1, 0)) == other.hand_in(a_round(1, 1)) == []
    assert main.problems == other.problems
    assert main.problems == ["rounds were handed in after the end of the gathering"]
