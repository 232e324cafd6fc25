"""What is told once, and once more to another server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shapetrace.agent.feeds import Feed
from shapetrace.transport.history import History


@dataclass(frozen=True)
class Item:
    name: int
    ordinal: int


def filled(feed: Feed[Item], number: int, name: int = 0) -> None:
    for _ in range(number):
        feed.add(Item(name, feed.next_ordinal(name)))


def taken(feed: Feed[Item]) -> list[int]:
    return [item.ordinal for item in feed.take()]


def test_items_are_taken_once_and_some_at_a_time() -> None:
    feed: Feed[Item] = Feed(10, 2, (0, 5))
    filled(feed, 3)
    assert [taken(feed) for _ in range(3)] == [[1, 2], [3], []]


def test_items_are_counted_by_name() -> None:
    feed: Feed[Item] = Feed(10, 5, (0, 5))
    filled(feed, 2)
    filled(feed, 1, name=7)
    filled(feed, 1)
    assert feed.take() == [Item(0, 1), Item(0, 2), Item(7, 1), Item(0, 3)]


def test_of_those_that_nobody_takes_the_newest_are_left() -> None:
    feed: Feed[Item] = Feed(2, 5, (0, 5))
    filled(feed, 3)
    assert taken(feed) == [2, 3]


def test_another_server_is_told_what_is_kept_before_what_waits() -> None:
    feed: Feed[Item] = Feed(10, 9, (1, 2))
    filled(feed, 5)
    taken(feed)
    filled(feed, 1)
    feed.begin_anew()
    assert taken(feed) == [1, 4, 5, 6]
    feed.begin_anew()
    assert taken(feed) == [1, 5, 6]


def test_a_forked_process_has_nothing_to_tell() -> None:
    feed: Feed[Item] = Feed(10, 5, (1, 5))
    filled(feed, 2)
    taken(feed)
    filled(feed, 1)
    feed.begin_anew()
    feed.forget()
    assert taken(feed) == []
    filled(feed, 1)
    assert taken(feed) == [1]
    feed.begin_anew()
    assert taken(feed) == [1]


def test_what_has_changed_is_told_once() -> None:
    feed: Feed[Item] = Feed(10, 5, (0, 5), problems={})

    def news(problems: dict[str, str]) -> dict[str, Any]:
        return feed.changed(paths=("a",), problems=problems)

    assert news({}) == {"paths": ("a",)}
    assert news({}) == {}
    assert news({"a": "why"}) == {"problems": {"a": "why"}}
    assert news({}) == {"problems": {}}
    feed.begin_anew()
    assert news({}) == {"paths": ("a",)}


def test_the_first_and_the_last_items_are_kept() -> None:
    history: History[Item] = History(2, 3)
    for ordinal in range(1, 11):
        history.add(Item(0, ordinal))
    assert [item.ordinal for item in history] == [1, 2, 8, 9, 10]
    assert (history.total, history.left_out) == (10, 5)
    history.clear()
    history.add(Item(0, 11))
    assert ([item.ordinal for item in history.first], history.total) == ([11], 1)


def test_behind_a_gap_nothing_is_among_the_first() -> None:
    history: History[Item] = History(2, 3)
    for ordinal in (1, 5, 6):
        history.add(Item(0, ordinal))
    assert [item.ordinal for item in history.first] == [1]
    assert history.left_out == 3
