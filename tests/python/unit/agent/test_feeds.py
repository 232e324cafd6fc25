"""What is told once, and once more to another server."""

from __future__ import annotations

from typing import Any

from shapetrace.agent.feeds import Feed
from shapetrace.transport.history import History
from shapetrace.transport.requested import Limits, RequestedItem, RequestedName


def filled(feed: Feed[RequestedItem], number: int, name: int = 0) -> None:
    for _ in range(number):
        feed.add(RequestedItem(name, feed.next_ordinal(name)))


def taken(feed: Feed[RequestedItem]) -> list[int]:
    return [item.ordinal for item in feed.take()]


def test_items_are_taken_once_and_some_at_a_time() -> None:
    feed: Feed[RequestedItem] = Feed(10, 2, Limits(0, 5))
    filled(feed, 3)
    assert [taken(feed) for _ in range(3)] == [[1, 2], [3], []]


def test_items_are_counted_by_name() -> None:
    feed: Feed[RequestedItem] = Feed(10, 5, Limits(0, 5))
    filled(feed, 2)
    filled(feed, 1, name=7)
    filled(feed, 1)
    assert feed.take() == [
        RequestedItem(0, 1),
        RequestedItem(0, 2),
        RequestedItem(7, 1),
        RequestedItem(0, 3),
    ]


def test_of_those_that_nobody_takes_the_newest_are_left() -> None:
    feed: Feed[RequestedItem] = Feed(2, 5, Limits(0, 5))
    filled(feed, 3)
    assert taken(feed) == [2, 3]


def test_another_server_is_told_what_is_kept_before_what_waits() -> None:
    feed: Feed[RequestedItem] = Feed(10, 9, Limits(1, 2))
    filled(feed, 5)
    taken(feed)
    filled(feed, 1)
    feed.begin_anew()
    assert taken(feed) == [1, 4, 5, 6]
    feed.begin_anew()
    assert taken(feed) == [1, 5, 6]


def test_a_forked_process_has_nothing_to_tell() -> None:
    feed: Feed[RequestedItem] = Feed(10, 5, Limits(1, 5))
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
    feed: Feed[RequestedItem] = Feed(10, 5, Limits(0, 5), problems={})

    def news(problems: dict[str, str]) -> dict[str, Any]:
        found = feed.news(lambda: {"requests": ("a",), "problems": problems})
        return {name: value for name, value in found.items() if value}

    assert news({}) == {"requests": ("a",)}
    assert news({}) == {}
    assert news({"a": "why"}) == {"problems": {"a": "why"}}
    assert feed.news(lambda: {"problems": {}})["problems"] == {}
    feed.begin_anew()
    assert news({}) == {"requests": ("a",)}


def test_a_name_is_told_once_and_with_its_first_item() -> None:
    feed: Feed[RequestedItem] = Feed(10, 5, Limits(0, 5))
    name = RequestedName(0, "x", "x")
    feed.names.append(name)
    filled(feed, 1)
    assert feed.news(dict) == {"names": (name,), "items": (RequestedItem(0, 1),)}
    filled(feed, 1)
    assert feed.news(dict) == {"names": (), "items": (RequestedItem(0, 2),)}
    assert feed.news(dict) == {}
    feed.begin_anew()
    assert feed.news(dict)["names"] == (name,)


def test_the_first_and_the_last_items_are_kept() -> None:
    history: History[RequestedItem] = History(2, 3)
    for ordinal in range(1, 11):
        history.add(RequestedItem(0, ordinal))
    assert [item.ordinal for item in history] == [1, 2, 8, 9, 10]
    assert (history.total, history.left_out) == (10, 5)
    history.clear()
    history.add(RequestedItem(0, 11))
    assert ([item.ordinal for item in history.first], history.total) == ([11], 1)


def test_behind_a_gap_nothing_is_among_the_first() -> None:
    history: History[RequestedItem] = History(2, 3)
    for ordinal in (1, 5, 6):
        history.add(RequestedItem(0, ordinal))
    assert [item.ordinal for item in history.first] == [1]
    assert history.left_out == 3
