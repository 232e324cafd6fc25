"""What is in containers and objects, whoever asks."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from dataclasses import InitVar, dataclass
from typing import Any, ClassVar

import pytest
import torch

from shapetrace.inspecting.attributes import dataclass_fields, own_attributes
from shapetrace.inspecting.containers import INSIDE, contained_by, held_by, remade
from shapetrace.recorder.describe import describe_value
from shapetrace.recorder.values.inside import tensors_in

Pair = namedtuple("Pair", "first second")


@dataclass
class Fields:
    first: Any
    given: InitVar[Any]
    second: Any = None
    shared: ClassVar[Any] = torch.ones(9)

    def __post_init__(self, given: Any) -> None:
        self.given = given  # type: ignore[attr-defined]


@dataclass(slots=True)
class Slots:
    first: Any
    second: Any


class Derived(Fields):
    def __getattribute__(self, name: str) -> Any:
        assert name == "__post_init__"
        return super().__getattribute__(name)


class Strange(dict):
    def keys(self) -> Any:
        raise AssertionError

    values = items = __iter__ = keys


def unset() -> Slots:
    value = Slots(1, 2)
    del value.first
    return value


VALUES: list[tuple[Any, list[Any] | None, list[Any]]] = [
    ([1, 2], None, [1, 2]),
    ((1, 2), None, [1, 2]),
    (Pair(1, 2), None, [1, 2]),
    (torch.Size([1, 2]), None, [1, 2]),
    ({"a": 1, 2: 3}, ["a", 2], [1, 3]),
    (OrderedDict(a=1), ["a"], [1]),
    (Strange(a=1), ["a"], [1]),
    (Fields(1, 0, 2), ["first", "second"], [1, 2]),
    (Derived(1, 0, 2), ["first", "second"], [1, 2]),
    (Slots(1, 2), ["first", "second"], [1, 2]),
    (unset(), ["second"], [2]),
]


@pytest.mark.parametrize(("value", "keys", "inside"), VALUES, ids=lambda each: type(each).__name__)
def test_what_is_inside(value: Any, keys: list[Any] | None, inside: list[Any]) -> None:
    assert contained_by(value, type(value)) == (keys, inside)
    assert contained_by(value, type(value), 1) == (keys and keys[:1], inside[:1])
    held = held_by(value, type(value))
    assert held is not None
    assert (held.values, held.length, held.is_own) == (inside, len(inside), True)
    if keys is not None:
        assert held.keys == keys


@pytest.mark.parametrize("value", [1, "ab", None, object(), Fields, {1, 2}, torch.nn.ReLU()])
def test_what_contains_nothing(value: Any) -> None:
    assert contained_by(value, type(value)) is None


def test_containers_are_made_anew_around_other_items() -> None:
    def leaf(value: Any) -> Any:
        return value + 1 if type(value) is int else INSIDE

    def made(value: Any, deepest: int = 9) -> Any:
        return remade(value, leaf, str, lambda other: f"<{type(other).__name__}>", deepest)

    value = {"a": [1, (2, Pair(3, 4))], 5: Strange(z=6), "other": object()}
    assert made(value) == {"a": [2, (3, Pair(4, 5))], "5": {"z": 7}, "other": "<object>"}
    assert type(made(value)["a"][1][1]) is Pair
    assert made(Fields(1, 0, 2)).second == 3
    assert made([[1]], 1) == ["<list>"]
    row: list[Any] = [1]
    row.append((row,))
    again = made(row)
    assert again[1][0] is again


def test_fields_are_what_objects_have() -> None:
    assert dataclass_fields(Derived.__mro__) == ["first", "second"]
    found = own_attributes(Derived(1, 0, 2), Derived.__mro__)
    assert found == {"first": 1, "given": 0, "second": 2}


@pytest.mark.parametrize(
    "make",
    [
        lambda one, two: Fields(one, torch.ones(9), two),
        Slots,
        Pair,
        lambda *each: [*each],
        lambda *each: each,
        lambda one, two: {"b": one, "a": two},
    ],
)
def test_tensors_come_in_the_order_in_which_they_are_described(make: Any) -> None:
    value = make({"a": torch.ones(2)}, [torch.ones(1), 5])
    assert [each.shape[0] for each in tensors_in(value)] == sizes(describe_value(value)) == [2, 1]


def sizes(raw: Any) -> list[int]:
    if raw[0] == "container":
        return [size for item in raw[3] for size in sizes(item)]
    return [] if raw[0] == "other" else [raw[0][0]]
