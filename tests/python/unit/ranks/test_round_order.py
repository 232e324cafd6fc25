from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shapetrace.capture.results import ResultEntry, Round
from shapetrace.ranks.round_order import RoundOrder


def order(world_size: int, *rounds: str) -> RoundOrder:
    """Rounds as `0 t1`: rank 0, the first of training, in the order of their arrival."""
    made = RoundOrder(world_size)
    for text in rounds:
        add(made, text)
    return made


def add(order: RoundOrder, text: str) -> None:
    rank, name = text.split()
    mode: Any = {"t": "train", "e": "eval"}[name[0]]
    entry = ResultEntry([int(name[1:])], [], [text])
    order.add(Round(int(name[1:]), int(rank), mode, {"x": entry}), 1)


def shown(gathered: Iterable[dict[str, ResultEntry]]) -> list[str]:
    return [", ".join(entries["x"].values) for entries in gathered]


def test_a_round_is_complete_when_all_have_delivered_it() -> None:
    rounds = order(3, "0 t1", "2 t1")
    assert rounds.complete({1, 2}) == []
    assert rounds.behind({1, 2}) == [1]
    add(rounds, "1 t1")
    assert shown(rounds.complete({1, 2})) == ["0 t1, 1 t1, 2 t1"]


def test_others_may_be_ahead() -> None:
    rounds = order(2, "1 t1", "1 t2", "0 t1")
    assert shown(rounds.complete({1})) == ["0 t1, 1 t1"]
    add(rounds, "0 t2")
    assert shown(rounds.complete({1})) == ["0 t2, 1 t2"]
    assert rounds.rest() == []


def test_a_rank_that_went_on_to_a_later_round_has_left_one_out() -> None:
    rounds = order(2, "0 t1", "0 e1", "0 t2", "1 t1", "1 t2")
    assert shown(rounds.complete({1})) == ["0 t1, 1 t1", "0 e1", "0 t2, 1 t2"]


def test_rounds_that_rank_0_left_out_go_before_the_next() -> None:
    rounds = order(3, "0 t1", "1 t1", "2 t1", "1 e1", "1 e2", "2 e1", "1 t2", "2 t2", "0 t2")
    assert shown(rounds.complete({1, 2})) == [
        "0 t1, 1 t1, 2 t1",
        "1 e1, 2 e1",
        "1 e2",
        "0 t2, 1 t2, 2 t2",
    ]
    assert rounds.held(1) == rounds.held(2) == 0


def test_what_comes_late_goes_with_the_next() -> None:
    rounds = order(2, "0 t1", "0 t2")
    assert shown(rounds.complete(set())) == ["0 t1", "0 t2"]
    for text in ("1 t1", "1 t2", "1 t3", "0 t3"):
        add(rounds, text)
    assert rounds.late == {1}
    assert shown(rounds.complete({1})) == ["0 t3, 1 t1, 1 t2, 1 t3"]


def test_the_first_can_be_forced_out() -> None:
    rounds = order(2, "0 t1", "0 t2", "1 t1")
    assert shown(rounds.force()) == ["0 t1, 1 t1"]
    assert shown(rounds.force()) == ["0 t2"]
    assert rounds.force() == []
    assert rounds.held(0) == rounds.held(1) == 0


def test_the_rest_has_the_rounds_of_ranks_that_had_more() -> None:
    rounds = order(4, "0 t1", "1 t1", "1 t2", "1 e1", "2 t2", "2 t3", "3 e1", "3 t2")
    assert (
        shown(rounds.rest())
        == [
            "0 t1, 1 t1",
            "1 t2, 2 t2",
            "1 e1, 3 e1",
            "3 t2",
            "2 t3",
        ]
        or shown(rounds.rest()) == []
    )


def test_which_round_came_last_is_told() -> None:
    rounds = order(2, "1 t1", "1 t2", "1 e1")
    assert rounds.newest(1) == "after round 2 (train) and 1 (eval)"
    assert rounds.newest(0) == "before its first round"
