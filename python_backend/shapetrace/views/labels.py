"""Values of several names side by side on one short line: ``q,k f32[2,16,64], mask bool[16,16]``.

Text that does not fit is shortened here, so that the editor does not cut it inside a word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from shapetrace.events.model import Container, ErrorInfo, Value
from shapetrace.views.shapes import CUT, cut_end, holds_tensor, merge_text, value_text
from shapetrace.views.styled import printable

FAILED = "✗"
"""Stands before the error that ended a call."""

_LEAST = 11
"""Characters for a blank and a shape that still says something."""

_TAIL = re.compile(r"\([^()]{1,24}\)\.?\Z")
"""The end of many of torch's messages, with the sizes: their most important part."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """A name and the different values that it had."""

    name: str | None
    values: tuple[Value, ...]


def merged_text(values: Sequence[Value], length: int | None = None) -> str:
    """The text of the values of several calls; if all are alike, what fits is chosen with care."""
    distinct = {value_text(value): value for value in values}
    text = printable(merge_text(distinct.values()))
    if length is not None and len(text) > length:
        text = printable(merge_text(distinct.values(), is_short=True))
    if length is None or len(text) <= length:
        return text
    fields = _fields(values)
    if fields:
        # What an object is called says less than what is in it.
        return labelled_text(fields, length)
    if len(distinct) == 1:
        return printable(value_text(values[0], length))
    return cut_end(text, length)


def labelled_text(items: Sequence[Labelled], length: int) -> str:
    """Several names with their values; names in a row whose values are alike share them."""
    groups = [(",".join(item.name or "" for item in run), values) for values, run in _runs(items)]
    texts: list[str] = []
    room = length
    for index, (names, values) in enumerate(groups):
        is_last = index == len(groups) - 1
        left = room - (0 if is_last else len(", " + CUT))
        text = _pair(names, merged_text(values))
        if len(text) > left and (not texts or left >= len(names) + _LEAST):
            text = _fitted(names, values, left)
        if len(text) > left:
            texts.append(CUT)
            break
        texts.append(text)
        room -= len(text) + len(", ")
    return cut_end(", ".join(texts), length)


def tuple_text(items: Sequence[tuple[Value, ...]], length: int) -> str:
    """The items of one tuple: ``(f32[2,16], i64[2])``; of which nothing is known are ``…``."""
    texts = [merged_text(values) if values else CUT for values in items]
    inside = f"{texts[0]}," if len(texts) == 1 else ", ".join(texts)
    return cut_end(f"({inside})", length)


def failure_text(error: ErrorInfo, length: int) -> str:
    """``✗ mat1 and mat2 … (2x3 and 4x5)``: an error in a few words."""
    lines = (line.strip() for line in error.message.splitlines())
    message = printable(next(filter(None, lines), "") or error.type)
    room = length - len(FAILED) - 1
    tail = _TAIL.search(message)
    if len(message) > room and tail is not None and tail.start() and len(tail[0]) + 8 < room:
        kept = message[: room - len(tail[0]) - len(CUT) - 2]
        # Whole words only, unless there is but one.
        kept = kept.rpartition(" ")[0] or kept
        message = f"{kept} {CUT} {tail[0]}"
    return f"{FAILED} {cut_end(message, room)}"


def _fields(values: Sequence[Value]) -> list[Labelled]:
    """The tensors that objects of one class have under equal names."""
    first = values[0]
    if not isinstance(first, Container) or first.keys is None or first.kind == "dict":
        return []
    alike = [
        value
        for value in values
        if isinstance(value, Container) and (value.kind, value.keys) == (first.kind, first.keys)
    ]
    if len(alike) < len(values):
        return []
    columns = zip(*(value.items for value in alike), strict=True)
    fields = zip(first.keys, columns, strict=True)
    return [Labelled(key, column) for key, column in fields if holds_tensor(column[0])]


def _runs(items: Sequence[Labelled]) -> list[tuple[tuple[Value, ...], list[Labelled]]]:
    runs = groupby(items, key=lambda item: merged_text(item.values))
    listed = [list(run) for _, run in runs]
    return [(run[0].values, run) for run in listed]


def _pair(names: str, text: str) -> str:
    return f"{names} {text}" if names else text


def _fitted(names: str, values: Sequence[Value], length: int) -> str:
    """The first of the groups, made to fit: the shape keeps at least half of the room."""
    if not names:
        return merged_text(values, length)
    text = merged_text(values, max(length - len(names) - 1, length // 2))
    return _pair(cut_end(names, length - len(text) - 1), text)
