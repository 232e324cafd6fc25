"""What is told of captured values: a few numbers of each, and never the values themselves.

{"type": "captures",
 "paths": ["layers.*.forward", "forward.mask"],
 "problems": [["forward.mask", "matches nothing"]],
 "names": [[1, "layers.0.forward", "layers.*.forward", "Net"]],
 "values": [[1, 3, 12, "train", "Tensor", "float32", [2, 4], "cpu", "",
             [8, 8, -1.2, 3.4, 0.1, 0, 0, [1, 0, 5, 2]]]]}

Paths, problems and names are there where something is new of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from shapetrace.events.checks import (
    FIGURE_OR_NONE,
    LIST,
    LIST_OR_NONE,
    NUMBER,
    TEXT,
    Columns,
    Refused,
    check_items,
    pair_in,
    read_each,
    text_in,
)
from shapetrace.transport.framing import Message

BINS: Final = 16
"""Parts of the range between the smallest and the largest number that are counted in."""

MOST_KEPT: Final = 256
"""Of the values of one name the newest so many are kept, on either side; the rest are counted."""

Mode: TypeAlias = Literal["train", "eval"]

_NAME = Columns(number=NUMBER, name=TEXT, path=TEXT, model=TEXT)
_VALUE = Columns(
    name=NUMBER,
    ordinal=NUMBER,
    iteration=NUMBER,
    mode=TEXT,
    kind=TEXT,
    dtype=TEXT,
    shape=LIST_OR_NONE,
    device=TEXT,
    text=TEXT,
    statistics=LIST_OR_NONE,
)
_STATISTICS = Columns(
    numbers=NUMBER,
    seen=NUMBER,
    low=FIGURE_OR_NONE,
    high=FIGURE_OR_NONE,
    mean=FIGURE_OR_NONE,
    nans=NUMBER,
    infinities=NUMBER,
    bins=LIST,
)


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is told of numbers."""

    numbers: int
    seen: int
    """How many of them were looked at."""
    low: float | None
    """The smallest that is finite; None where none is."""
    high: float | None
    mean: float | None
    nans: int = 0
    infinities: int = 0
    bins: tuple[int, ...] = ()
    """How many of those that were looked at lie in each part between the smallest and largest."""


@dataclass(frozen=True, slots=True)
class CapturedValue:
    """One value at one moment."""

    name: int
    ordinal: int
    """It is the so-manieth of its name."""
    iteration: int
    mode: Mode
    kind: str
    """``Tensor``, or of what class it is."""
    dtype: str = ""
    shape: tuple[int, ...] | None = None
    device: str = "cpu"
    text: str = ""
    """What is no tensor, in a few words."""
    statistics: Statistics | None = None


@dataclass(frozen=True, slots=True)
class CapturedName:
    """What captured values are called, and why they are captured."""

    number: int
    name: str
    path: str
    """What was asked for."""
    model: str
    """The class of the outermost module that it is in."""


@dataclass(frozen=True, slots=True)
class CaptureNews:
    """What one message tells."""

    paths: tuple[str, ...] | None = None
    """All that was asked for; None where that has been told."""
    problems: dict[str, str] | None = None
    """What is wrong with which path, all of them; None where that has been told."""
    names: tuple[CapturedName, ...] = ()
    values: tuple[CapturedValue, ...] = ()


def captures_message(news: CaptureNews) -> Message:
    """The message that tells something."""
    message: Message = {"type": "captures"}
    if news.paths is not None:
        message["paths"] = list(news.paths)
    if news.problems is not None:
        message["problems"] = [list(each) for each in news.problems.items()]
    if news.names:
        message["names"] = [[it.number, it.name, it.path, it.model] for it in news.names]
    if news.values:
        message["values"] = [_value_row(value) for value in news.values]
    return message


def read_captures(message: Message) -> tuple[CaptureNews, list[str]]:
    """What a message tells, and what is wrong with those of its rows that are left out."""
    refused: list[str] = []
    paths, problems = message.get("paths"), message.get("problems")
    news = CaptureNews(
        None if paths is None else tuple(read_each("paths", text_in, paths, refused)),
        None if problems is None else dict(read_each("problems", pair_in, problems, refused)),
        tuple(read_each("names", _read_name, message.get("names", ()), refused)),
        tuple(read_each("values", _read_value, message.get("values", ()), refused)),
    )
    return news, refused


def _value_row(value: CapturedValue) -> list[Any]:
    told = value.statistics
    statistics = told and [
        *(told.numbers, told.seen, told.low, told.high, told.mean),
        *(told.nans, told.infinities, list(told.bins)),
    ]
    shape = None if value.shape is None else list(value.shape)
    return [
        *(value.name, value.ordinal, value.iteration, value.mode),
        *(value.kind, value.dtype, shape, value.device, value.text, statistics),
    ]


def _read_name(row: Any) -> CapturedName:
    _NAME.check_closely(row)
    return CapturedName(*row)


def _read_value(row: Any) -> CapturedValue:
    _VALUE.check_closely(row)
    name, ordinal, iteration, mode, kind, dtype, shape, device, text, told = row
    if mode not in ("train", "eval"):
        raise Refused("mode is neither train nor eval")
    if shape is not None:
        check_items("shape", NUMBER, shape)
    return CapturedValue(
        *(name, ordinal, iteration, mode, kind, dtype, None if shape is None else tuple(shape)),
        *(device, text, None if told is None else _read_statistics(told)),
    )


def _read_statistics(row: Any) -> Statistics:
    _STATISTICS.check_closely(row)
    numbers, seen, low, high, mean, nans, infinities, bins = row
    check_items("bins", NUMBER, bins)
    if len(bins) > BINS or any(number < 0 for number in bins):
        raise Refused("bins are no numbers of values in parts of a range")
    return Statistics(numbers, seen, low, high, mean, nans, infinities, tuple(bins))
