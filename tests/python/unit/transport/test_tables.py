"""Rows and objects that are made of dataclasses, and what is said of those that are wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest

from shapetrace.events.checks import LARGEST, LARGEST_FIGURE, Refused
from shapetrace.events.model import Container, DimensionRange, Other, Tensor, Value
from shapetrace.transport.tables import Object, Table


def even(name: str, number: int) -> None:
    if number % 2:
        raise Refused(f"{name} is odd")


@dataclass(frozen=True, slots=True)
class Size:
    """A row in a row."""

    width: int
    height: Annotated[int, even]


@dataclass(frozen=True, slots=True)
class Thing:
    """One column of each type."""

    number: int
    text: str
    is_good: bool
    figure: float
    choice: Literal["left", "right"]
    value: Value | None
    size: Size | None = None
    names: tuple[str, ...] | None = None
    sizes: tuple[Size, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class News:
    """An object with one field of each type."""

    first_name: str
    size: Size
    sizes: tuple[Size, ...] = ()
    names: tuple[str, ...] | None = None
    notes: dict[str, str] | None = None
    thing: int | None = None


VALUE = Container(
    "dict",
    (
        Tensor((3, "s0", DimensionRange(1, 4)), "float32", "cuda:0", True, "strided", (1, 2, 3)),
        Tensor(None, "int8", kind="NestedTensor", layout="jagged", placements="[Shard(0)]"),
        Other("3"),
    ),
    ("a", "b", "c"),
    9,
)
THING = Thing(7, "a", True, 0.5, "left", VALUE, Size(1, 2), ("x", "y"), (Size(3, 4),))
SMALL = Thing(7, "a", False, 1, "right", None)
ROWS = Table(Thing)


@pytest.mark.parametrize("thing", [THING, SMALL])
def test_a_row_is_read_as_it_was_written(thing: Thing) -> None:
    row = ROWS.write(thing)
    assert len(row) == len(ROWS.names) == 9
    assert ROWS.read(row) == thing


def test_a_row_is_a_list_of_what_the_fields_are() -> None:
    assert ROWS.names[:2] == ("number", "text")
    assert ROWS.write(THING)[6:] == [[1, 2], ["x", "y"], [[3, 4]]]
    assert ROWS.write(THING)[5][2][0] == [
        *(0, [3, "s0", [1, 4]], "float32", "cuda:0", True, [1, 2, 3], "Tensor", "strided", None)
    ]


@pytest.mark.parametrize(
    ("column", "wrong", "said"),
    [
        (0, True, "number should be a whole number, not true or false"),
        (0, 1.0, "number should be a whole number, not a decimal number"),
        (0, LARGEST, "number is too large"),
        (1, None, "text should be text, not null"),
        (2, 1, "is_good should be true or false, not a whole number"),
        (3, "1", "figure should be a whole number or a decimal number, not text"),
        (3, LARGEST_FIGURE, "figure is too large"),
        (3, -(10**400), "figure is too large"),
        (4, "up", "choice is not one of left, right"),
        (4, ["left"], "choice should be text, not a list"),
        (5, [3, "x"], "a value is neither a tensor nor a container nor a text"),
        (5, {}, "value should be a list or null, not an object"),
        (6, [1], "it has 1 columns, not 2"),
        (6, [1, 3], "height is odd"),
        (6, 5, "size should be a list or null, not a whole number"),
        (7, ["x", 1], "an item of names should be text, not a whole number"),
        (8, None, "sizes should be a list, not null"),
        (8, [[1, 2], 3], "an item of sizes should be a list, not a whole number"),
    ],
)
def test_a_wrong_column_is_refused(column: int, wrong: object, said: str) -> None:
    row = ROWS.write(THING)
    row[column] = wrong
    with pytest.raises(Refused) as refused:
        ROWS.read(row)
    assert str(refused.value) == said


@pytest.mark.parametrize("row", [None, 3, {}, "seven col", [], [1] * 10])
def test_what_is_no_row_is_refused(row: object) -> None:
    with pytest.raises(Refused):
        ROWS.read(row)


@dataclass(frozen=True, slots=True)
class Chosen:
    """A row with sets."""

    numbers: frozenset[int]
    names: frozenset[str] | None = None


def test_a_set_is_a_list_in_order() -> None:
    chosen = Chosen(frozenset({30, 2, 1}), frozenset({"b", "a"}))
    assert Table(Chosen).write(chosen) == [[1, 2, 30], ["a", "b"]]
    assert Table(Chosen).read([[1, 30, 2], ["b", "a"]]) == chosen
    assert Table(Chosen).read([[], None]) == Chosen(frozenset())
    with pytest.raises(Refused, match="an item of numbers should be a whole number, not a list"):
        Table(Chosen).read([[1, []], None])


NEWS = News("a", Size(1, 2), (Size(3, 4), Size(5, 6)), ("x",), {"p": "why"}, 3)


@pytest.mark.parametrize("news", [NEWS, News("a", Size(1, 2)), News("", Size(0, 0), (), (), {})])
def test_an_object_is_read_as_it_was_written(news: News) -> None:
    refused: list[str] = []
    assert Object(News).read(Object(News).write(news), refused) == news
    assert refused == []


def test_an_object_has_what_is_not_empty_by_default() -> None:
    assert Object(News).write(News("a", Size(1, 2), names=())) == {
        "firstName": "a",
        "size": {"width": 1, "height": 2},
        "names": [],
    }
    assert Object(News).write(NEWS)["sizes"] == [[3, 4], [5, 6]]
    assert Object(News).write(NEWS)["notes"] == [["p", "why"]]


def test_what_is_wrong_in_a_list_is_left_out_and_said() -> None:
    document = {
        **Object(News).write(NEWS),
        "sizes": [[3, 4], [3], [5, 7], None],
        "names": ["x", 5],
        "notes": [["p", "why"], ["q"], "ab"],
        "thing": "3",
        "unknown": 1,
    }
    refused: list[str] = []
    assert Object(News).read(document, refused) == News(
        "a", Size(1, 2), (Size(3, 4),), ("x",), {"p": "why"}
    )
    assert refused == [
        "a row of sizes (3): it has 1 columns, not 2",
        "a row of sizes (5): height is odd",
        "a row of sizes: it should be a list, not null",
        "a row of names: it should be text, not a whole number",
        "a row of notes ('q'): it has 1 columns, not 2",
        "a row of notes: it should be a list, not text",
        "thing should be a whole number, not text",
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"firstName": 3}, "firstName should be text, not a whole number"),
        ({"size": None}, "size should be an object, not null"),
        ({"size": {"width": 1}}, "height is missing"),
        ({"size": {"width": 1, "height": 3}}, "height is odd"),
    ],
)
def test_what_is_needed_and_wrong_is_refused(change: dict[str, object], said: str) -> None:
    with pytest.raises(Refused) as refused:
        Object(News).read({**Object(News).write(NEWS), **change}, [])
    assert str(refused.value) == said
