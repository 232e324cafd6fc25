"""Gathering in programs that torchrun starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.python.e2e.capture.ranks import Outcome, torchrun

pytestmark = pytest.mark.e2e

SCENARIOS = """
    import time
    import torch
    import torch.distributed as dist
    from rounds import a_round, tell
    from shapetrace.ranks.gathering import gathering_for_this_process as begin
    from shapetrace.ranks.liveness import Patience

    early = begin("early")
    early_rounds = early.hand_in(a_round(1, early.rank))

    dist.init_process_group("gloo")
    rank = dist.get_rank()

    def together():
        dist.all_reduce(torch.ones(1))

    early_rounds += early.hand_in(a_round(2, rank))
    tell("before the process group", early, early_rounds + early.finish())

    # Collectives of the program's own go on between.
    gathering, gathered = begin("lockstep"), []
    for number in range(1, 6):
        together()
        gathered += gathering.hand_in(a_round(number, rank))
    tell("lockstep", gathering, gathered + gathering.finish() + gathering.finish())

    # Ranks at different speeds: each waits until the other has finished, or nearly so.
    for slower in (0, 1):
        gathering, gathered = begin("slower"), []
        if rank == slower:
            together()
        for number in range(1, 4):
            gathered += gathering.hand_in(a_round(number, rank))
        if rank != slower:
            if rank == 1:
                gathered += gathering.finish()
            together()
        tell(f"slower {slower}", gathering, gathered + gathering.finish())

    gathering, gathered = begin("uneven"), []
    for number in range(1, 3 + rank):
        gathered += gathering.hand_in(a_round(number, rank))
    if rank == 0:
        gathered += gathering.hand_in(a_round(1, rank, mode="eval", name="y"))
        gathered += gathering.hand_in(a_round(9, rank))
    tell("uneven", gathering, gathered + gathering.finish())

    first, second = begin("several"), begin("several")
    short = Patience(absent=1.0)
    other = begin("another", short) if rank == 0 else None
    gathered = second.hand_in(a_round(1, rank, "second")), first.hand_in(a_round(1, rank, "first"))
    tell("second", second, gathered[0] + second.finish())
    tell("first", first, gathered[1] + first.finish())

    # Only rank 0 traces, and others need it in between.
    if rank == 0:
        tell("only rank 0", other, other.hand_in(a_round(1, rank)) + other.finish())
    together()
    if rank == 1:
        other = begin("only rank 1", short)
        tell("only rank 1", other, other.hand_in(a_round(1, rank)) + other.finish())
    together()

    class Unpicklable:
        def __reduce__(self):
            raise TypeError("mine alone")

    gathering = begin("raises")
    gathered = gathering.hand_in(a_round(1, rank, "good", Unpicklable(), "better"))
    try:
        gathered += gathering.hand_in(a_round(2, rank))
        if rank == 1:
            raise ValueError
        gathered += gathering.hand_in(a_round(3, rank))
    except ValueError:
        pass
    finally:
        gathered += gathering.finish()
    for entries in gathered:
        for entry in entries.values():
            entry.values = [type(value).__name__ for value in entry.values]
    tell("raises", gathering, gathered)

    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    from shapetrace.capture.dtensors import plain

    mesh = init_device_mesh("cpu", (2,))
    whole = torch.arange(3.0, requires_grad=True)
    shards = distribute_tensor(whole, mesh, [Shard(0)])
    gathering = begin("DTensor")
    replicas = shards.redistribute(mesh, [Replicate()])
    values = plain(shards), plain(shards, full=True), plain(replicas)
    assert all(type(value) is torch.Tensor and not value.requires_grad for value in values)
    assert plain(whole) is whole
    gathered = gathering.hand_in(a_round(1, rank, *values))
    tell("DTensor", gathering, gathered + gathering.finish())

    large, gathered = begin("large"), []
    for number in range(4):
        together()
        value = torch.full((4 << 20,), number + rank, dtype=torch.float8_e5m2)
        gathered += large.hand_in(a_round(number, rank, value))
    dist.destroy_process_group()
    gathered += large.finish()
    for entries in gathered:
        for entry in entries.values():
            entry.values = [
                [str(value.dtype), value.numel(), value.float().unique().tolist()]
                for value in entry.values
            ]
    tell("large, process group destroyed", large, gathered)
"""


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """All of these scenarios in one program: starting ranks takes seconds."""
    return torchrun(tmp_path_factory.mktemp("torchrun"), SCENARIOS, 2)


def test_the_program_ends_well_and_nothing_is_printed(outcome: Outcome) -> None:
    assert outcome.code == 0, outcome.stderr
    assert outcome.stderr == ""


def test_rounds_come_together_in_order(outcome: Outcome) -> None:
    told = outcome.told("lockstep")
    assert told.values() == [[f"0:{number}", f"1:{number}"] for number in range(1, 6)]
    assert told.gathered[0]["x"] == [[0, "0:1"], [1, "1:1"]]
    assert told.problems == []
    assert outcome.told("lockstep", rank=1).gathered == []


def test_what_was_captured_before_the_process_group_comes_too(outcome: Outcome) -> None:
    assert outcome.told("before the process group").values() == [["0:1", "1:1"], ["0:2", "1:2"]]


@pytest.mark.parametrize("slower", [0, 1])
def test_one_rank_may_be_slower_than_another(outcome: Outcome, slower: int) -> None:
    told = outcome.told(f"slower {slower}")
    assert told.values() == [["0:1", "1:1"], ["0:2", "1:2"], ["0:3", "1:3"]]
    assert told.problems == []


def test_ranks_may_have_different_rounds(outcome: Outcome) -> None:
    assert outcome.told("uneven").gathered == [
        {"x": [[0, "0:1"], [1, "1:1"]]},
        {"x": [[0, "0:2"], [1, "1:2"]]},
        {"y": [[0, "0:1"]]},
        {"x": [[1, "1:3"]]},
        {"x": [[0, "0:9"]]},
    ]


def test_several_gatherings_do_not_mix(outcome: Outcome) -> None:
    assert outcome.told("first").values() == [["first", "first"]]
    assert outcome.told("second").values() == [["second", "second"]]


def test_a_gathering_of_one_rank_holds_nobody_up(outcome: Outcome) -> None:
    told = outcome.told("only rank 0")
    assert told.values() == [["0:1"]]
    assert told.problems == ["rank 1 has not traced this model"]
    (problem,) = outcome.told("only rank 1", rank=1).problems
    assert problem.startswith("rank 1: rank 0 has not begun to gather yet")


def test_a_rank_that_raises_keeps_what_it_captured(outcome: Outcome) -> None:
    told = outcome.told("raises")
    assert told.values() == [
        ["str", "Unpicklable", "str", "str", "str"],
        ["str", "str"],
        ["str"],
    ]
    assert told.problems == [
        "rank 1: values of 'x' were left out, they cannot be sent to rank 0 (TypeError: mine alone)"
    ]


def test_of_distributed_tensors_the_shard_or_all_can_be_had(outcome: Outcome) -> None:
    whole = [0, 1, 2]
    assert outcome.told("DTensor").values() == [[[0, 1], whole, whole, [2], whole, whole]]


def test_large_values_arrive_after_the_process_group_is_gone(outcome: Outcome) -> None:
    size = 4 << 20
    assert outcome.told("large, process group destroyed").values() == [
        [["torch.float8_e5m2", size, [number]], ["torch.float8_e5m2", size, [number + 1]]]
        for number in range(4)
    ]


def test_four_ranks_without_a_word_to_each_other(tmp_path: Path) -> None:
    outcome = torchrun(
        tmp_path,
        """
        import torch.distributed as dist
        from rounds import a_round, tell
        from shapetrace.ranks.gathering import gathering_for_this_process

        dist.init_process_group("gloo")
        rank = dist.get_rank()
        gathering, gathered = gathering_for_this_process(), []
        for number in range(1, 30 + rank):
            gathered += gathering.hand_in(a_round(number, rank, number))
        tell("four", gathering, gathered + gathering.finish())
        dist.destroy_process_group()
        """,
        4,
    )
    assert (outcome.code, outcome.stderr) == (0, "")
    told = outcome.told("four")
    assert told.values() == [[number] * min(4, 33 - number) for number in range(1, 33)]
    assert told.problems == []
