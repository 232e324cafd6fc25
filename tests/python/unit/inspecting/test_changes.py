"""What counts as a change for captured values and for followed variables alike."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from shapetrace.capture import value_changes
from shapetrace.variables.memories import remember

Pair = namedtuple("Pair", "first second")

READERS: dict[str, Callable[[Any], Any]] = {"capture": value_changes.seen, "variables": remember}
ran: list[str] = []


class Loud:
    """Says so when it is compared or looked into."""

    def __eq__(self, other: object) -> bool:
        ran.append("eq")
        return True

    def __hash__(self) -> int:
        return 1


class LoudList(list):
    def __iter__(self):
        ran.append("iter")
        return super().__iter__()


class LoudSet(set):
    def __iter__(self):
        ran.append("iter")
        return super().__iter__()

    def __len__(self):
        ran.append("len")
        return super().__len__()


class LoudDict(dict):
    def items(self):
        ran.append("items")
        return super().items()


@dataclass
class Fields:
    x: Any

    def __getattribute__(self, name: str) -> Any:
        ran.append("attribute")
        return super().__getattribute__(name)


@pytest.fixture(params=READERS)
def look(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    return READERS[request.param]


@pytest.mark.parametrize(
    ("before", "after", "is_still"),
    [
        (1, 1, True),
        (1, True, False),
        (0.0, -0.0, False),
        (float("nan"), float("nan"), True),
        ("a", "b", False),
        ([1, [2]], [1, [2]], True),
        ([1, [2]], [1, [3]], False),
        ([1], [1, 2], False),
        ([1], (1,), False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, False),
        ({"a": 1}, OrderedDict(a=1), False),
        ({("a", 1): 1}, {("a", 1): 1}, True),
        (Pair(1, 2), Pair(1, 2), True),
        (Pair(1, 2), (1, 2), False),
        ({1, 2}, {2, 1}, True),
        ({1, 2}, {1, 3}, False),
        ({1}, frozenset({1}), False),
        ({"a": Loud()}, {"a": Loud()}, False),
    ],
    ids=lambda value: str(value).partition(" object at ")[0],
)
def test_a_change(look: Callable[[Any], Any], before: Any, after: Any, is_still: bool) -> None:
    known = look(before)
    assert known.is_still(before)
    assert known.is_still(after) is is_still


@pytest.mark.parametrize(
    "value",
    [{Loud(): 1}, LoudList([1, 2]), LoudSet([1]), LoudDict(a=1), Fields(1), [Loud()]],
    ids=lambda v: type(v).__name__,
)
def test_none_of_the_values_own_code_runs(look: Callable[[Any], Any], value: Any) -> None:
    other = {Loud(): 1} if type(value) is dict else value
    ran.clear()
    known = look(value)
    known.is_still(value)
    known.is_still(other)
    assert ran == []
