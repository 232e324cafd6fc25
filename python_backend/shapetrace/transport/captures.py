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

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from shapetrace.transport.framing import Message

BINS: Final = 16
"""Parts of the range between the smallest and the largest number that are counted in."""

MOST_KEPT: Final = 256
"""Of the values of one name the newest so many are kept, on either side; the rest are counted."""

Mode: TypeAlias = Literal["train", "eval"]


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


def read_captures(message: Message) -> CaptureNews:
    """What a message tells; whatever in it is not as it should be is left out."""
    paths = message.get("paths")
    problems = message.get("problems")
    return CaptureNews(
        None if paths is None else tuple(_texts(paths)),
        None if problems is None else dict(_pairs(problems)),
        tuple(_each(_read_name, message.get("names"))),
        tuple(_each(_read_value, message.get("values"))),
    )


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
    number, name, path, model = row
    return CapturedName(_whole(number), _text(name), _text(path), _text(model))


def _read_value(row: Any) -> CapturedValue:
    name, ordinal, iteration, mode, kind, dtype, shape, device, text, told = row
    if mode not in ("train", "eval"):
        raise ValueError
    statistics = None
    if told is not None:
        numbers, seen, low, high, mean, nans, infinities, bins = told
        statistics = Statistics(
            *(_whole(numbers), _whole(seen)),
            *(_number(low), _number(high), _number(mean)),
            *(_whole(nans), _whole(infinities)),
            bins=tuple(map(_whole, bins)),
        )
    return CapturedValue(
        *(_whole(name), _whole(ordinal), _whole(iteration), mode),
        *(_text(kind), _text(dtype), None if shape is None else tuple(map(_whole, shape))),
        *(_text(device), _text(text), statistics),
    )


def _each(read: Any, rows: object) -> Iterable[Any]:
    for row in rows if isinstance(rows, list) else ():
        try:
            yield read(row)
        except (TypeError, ValueError):
            continue


def _pairs(rows: object) -> Iterable[tuple[str, str]]:
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, list) and len(row) == 2 and all(isinstance(it, str) for it in row):
            yield row[0], row[1]


def _texts(values: object) -> Iterable[str]:
    return (each for each in (values if isinstance(values, list) else ()) if isinstance(each, str))


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    raise TypeError


def _whole(value: object) -> int:
    if type(value) is int:
        return value
    raise TypeError


def _number(value: object) -> float | None:
    if value is None or type(value) is int or type(value) is float:
        return value
    raise TypeError
