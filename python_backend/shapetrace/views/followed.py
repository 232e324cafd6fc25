"""What following tells, as a tree of calls.

┌── Dataset.transform  data.py:40, called from Dataset.__getitem__ data.py:28
├─ in   video  u8[73,3,720,720]
├─ data.py:45  video  u8[73,3,720,720] → f32[3,73,384,544]
│   ┌── resize  data.py:60, called from Dataset.transform data.py:46
│   ├─ in   frames  f32[3,73,384,544]
│   └─ out  f32[3,73,224,224]  3.1 ms
└─ out  f32[3,73,224,224]  12.3 ms
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from shapetrace.events import followed
from shapetrace.events.followed import (
    CallBegan,
    CallEnded,
    Caller,
    FollowedEvent,
    FollowedStatistics,
    FollowedValue,
    NamedValue,
    VariableChanged,
)
from shapetrace.events.model import Tensor
from shapetrace.views.shapes import CUT, value_text
from shapetrace.views.styled import Line, Span, StyledText, line_cells, printable

GUIDE = "│   "
_LEAST_VALUE = 24
"""A value has at least so many columns, however deep its call is."""

_MOST_TIME = 10
"""Columns that the time takes."""


@dataclass(frozen=True, slots=True)
class FollowedOptions:
    """How events shall be shown."""

    width: int = 80
    base: str | None = None
    """The directory that files below it are named relative to."""
    cuts_callers: bool = True
    """Whether callers for which there is no room are left out, as on a terminal."""


def event_text(event: FollowedEvent, options: FollowedOptions) -> StyledText:
    """The lines of one event."""
    if isinstance(event, CallBegan):
        return StyledText(tuple(_began(event, options)))
    if isinstance(event, VariableChanged):
        return StyledText(tuple(_changed(event, options)))
    if isinstance(event, CallEnded):
        return StyledText(((*ended_line(event, options), time_span(event.seconds)),))
    place = ""
    if event.file is not None:
        place = f"{place_text(event.file, event.line, options.base)}: "
    text = printable(f"shapetrace: {place}{event.text}")
    return StyledText((((text, "note"),),))


def looked_at(where: str, values: list[NamedValue], indent: str = "") -> StyledText:
    """One line for each value that was logged by name."""
    lines: list[Line] = []
    for each in values:
        spans: list[Span] = [
            (printable(indent), "guide"),
            ("├─ ", "guide"),
            (f"{printable(where)}  ", "call"),
            (printable(each.name), "name"),
            _GAP,
            (_short(each.value), "shape"),
        ]
        if each.value.statistics is not None:
            spans.append((f"  {statistics_text(each.value.statistics)}", "detail"))
        lines.append(tuple(spans))
    return StyledText(tuple(lines))


def _began(event: CallBegan, options: FollowedOptions) -> list[Line]:
    lines = [began_line(event, options)]
    for argument in event.arguments:
        lines += argument_lines(argument, event.thread, event.depth, options)
    return lines


def began_line(event: CallBegan, options: FollowedOptions) -> Line:
    """The line of a call, without its arguments."""
    head: list[Span] = [
        *_start(event.thread, event.depth),
        ("┌── ", "guide"),
        (printable(event.function), "call"),
        (f"  {place_text(event.file, event.line, options.base)}", "location"),
    ]
    if event.flavor == "module":
        head[-2:] = [(place_text(event.file, None, options.base), "call")]
    elif event.flavor != "function":
        head.append((f" {event.flavor}", "note"))
    if event.callers and event.flavor != "module":
        head += _called_from(event.callers, head, options)
    return tuple(head)


def _called_from(
    callers: Sequence[Caller], head: Sequence[Span], options: FollowedOptions
) -> list[Span]:
    """Who called, the innermost first; on a terminal as much of it as there is room for."""
    places = [place_text(each.file, each.line, options.base) for each in callers]
    names = [
        place if each.function == "<module>" else f"{printable(each.function)} {place}"
        for each, place in zip(callers, places, strict=True)
    ]
    chains = [names]
    if options.cuts_callers:
        chains += [[*names[:number], CUT] for number in range(len(names) - 1, 0, -1)]
        chains += [names[:1], places[:1]]
    for chain in chains:
        span: Span = (f", called from {' ← '.join(chain)}", "location")
        if not options.cuts_callers or line_cells([*head, span]) <= options.width:
            return [span]
    return []


def argument_lines(
    argument: NamedValue, thread: str | None, depth: int, options: FollowedOptions
) -> list[Line]:
    """The lines of an argument; none for ``self``, of which only the class is known."""
    is_object = argument.value.kind == followed.OTHER and not argument.followed
    if is_object and argument.name in ("self", "cls"):
        return []
    start = _start(thread, depth)
    name = printable(argument.name)
    left: list[Span] = [*start, ("├─ ", "guide"), ("in   ", "role"), (name, "name"), _GAP]
    line = (*left, *_value(argument.value, _room(left, options)))
    return [line, *_statistics(argument.value, start)]


_GAP: Span = ("  ", None)


def _changed(event: VariableChanged, options: FollowedOptions) -> list[Line]:
    start = _start(event.thread, event.depth)
    where = place_text(event.file, event.line, None)
    left: list[Span] = [
        *start,
        ("├─ ", "guide"),
        (where, "location"),
        _GAP,
        (printable(event.name), "name"),
    ]
    if not event.parts:
        lines: list[Line] = [
            (*left, _GAP, *_change(event.before, event.after, event.differs, left, options))
        ]
        lines += _statistics(event.after, start)
        return lines
    lines = []
    for part in event.parts:
        whole: list[Span] = [*left, (printable(part.path), "name")]
        change = _change(part.before, part.after, part.differs, whole, options)
        lines.append((*whole, _GAP, *change))
    if event.more_parts:
        lines.append((*left, (f"  and {event.more_parts} more", "note")))
    return lines


WORDS: Final = {
    followed.VALUES: "values changed",
    followed.WRITTEN: "written in place",
    followed.ASSIGNED: "assigned",
    followed.TOLERANCE: "within tolerance",
    followed.ITEMS: "items changed",
    followed.KIND: "another object",
}
"""The kind of difference, if the texts of both values are equal."""


def _change(
    before: FollowedValue | None,
    after: FollowedValue | None,
    differs: tuple[str, ...],
    left: list[Span],
    options: FollowedOptions,
) -> list[Span]:
    room = max(options.width - line_cells(left) - len(_GAP[0]), _LEAST_VALUE)
    if after is None:
        return [("removed", "note")]
    if before is None:
        return _value(after, room)
    words = [WORDS[each] for each in differs if each in (followed.VALUES, followed.TOLERANCE)]
    one, other = _short(before), _short(after)
    names = ("", "")
    if followed.KIND in differs and one == other:
        names = (f" {_class_of(before)}", f" {_class_of(after)}")
        one, other = one + names[0], other + names[1]
    if one == other:
        if not words:
            words = [WORDS.get(each, each) for each in differs]
        note = f"  {', '.join(words)}"
        return [*_value(after, max(room - len(note), _LEAST_VALUE)), (note, "note")]
    says_more = before.kind != followed.SCALAR or followed.TOLERANCE in differs
    note = f"  {', '.join(words)}" if words and says_more else ""
    half = max((room - 3 - len(note)) // 2, _LEAST_VALUE // 2)
    spare = max(half - len(one), 0)
    first = _fit(before, names[0], max(half, room - 3 - len(note) - len(other)))
    second = _fit(after, names[1], half + spare)
    spans: list[Span] = [
        (printable(first), "shape"),
        (" → ", "guide"),
        (printable(second), "shape"),
    ]
    if note:
        spans.append((note, "note"))
    return spans


@lru_cache(maxsize=2048)
def _short(value: FollowedValue) -> str:
    return value_text(value.value)


def _fit(value: FollowedValue, name: str, length: int) -> str:
    whole = _short(value) + name
    return whole if len(whole) <= length else value_text(value.value, length)


def _class_of(value: FollowedValue) -> str:
    return value.value.kind if isinstance(value.value, Tensor) else value.kind


def ended_line(event: CallEnded, options: FollowedOptions) -> Line:
    """The line that says how a call ended, without its time."""
    left: list[Span] = [*_start(event.thread, event.depth), ("└─ ", "guide")]
    if event.outcome == "raised":
        where = place_text(event.file, event.line, options.base)
        what = f"raised {event.error}" if event.error else "raised"
        return (*left, (what, "error"), (f" at {where}", "location"))
    if event.flavor == "module":
        return (*left, ("ended", "note"))
    if event.outcome == "closed" or event.value is None:
        return (*left, (f"{event.flavor} closed", "note"))
    if "generator" in event.flavor:
        return (*left, (f"{event.flavor} ended", "note"))
    left.append(("out  ", "role"))
    room = _room(left, options) - _MOST_TIME
    return (*left, *_value(event.value, max(room, _LEAST_VALUE)))


def time_span(seconds: float) -> Span:
    """How long it took."""
    return (f"  {seconds_text(seconds)}", "count")


def _value(value: FollowedValue, room: int) -> list[Span]:
    text = _short(value)
    if len(text) > room:
        text = value_text(value.value, max(room, _LEAST_VALUE))
    spans: list[Span] = [(printable(text), "shape")]
    kind = value.value.kind if isinstance(value.value, Tensor) else ""
    if kind not in ("", "Tensor", "Parameter", "ndarray") and len(text) + len(kind) + 2 <= room:
        spans.append((f"  {printable(kind)}", "class"))
    return spans


def _statistics(value: FollowedValue, start: list[Span]) -> list[Line]:
    if value.statistics is None:
        return []
    text = statistics_text(value.statistics)
    return [(*start, ("│    ", "guide"), (text, "detail"))]


def statistics_text(found: FollowedStatistics) -> str:
    """``min -2.1 · max 2.6 · mean 0.01 · 3 nan``."""
    if found.reason is not None:
        return found.reason
    facts = []
    if found.true is not None:
        facts.append(f"{found.true:,} of {found.seen:,} true")
    elif found.low is not None and found.high is not None and found.mean is not None:
        facts += [f"min {found.low:.4g}", f"max {found.high:.4g}", f"mean {found.mean:.4g}"]
    if found.not_numbers:
        facts.append(f"{found.not_numbers:,} nan")
    if found.infinite:
        facts.append(f"{found.infinite:,} inf")
    if found.seen < found.total:
        facts.append(f"seen {found.seen:,} of {found.total:,}")
    return " · ".join(facts)


def _room(left: list[Span], options: FollowedOptions) -> int:
    return max(options.width - line_cells(left), _LEAST_VALUE)


def _start(thread: str | None, depth: int) -> list[Span]:
    guides: Span = (GUIDE * depth, "guide")
    if thread is None:
        return [guides]
    return [(f"[{printable(thread)}] ", "note"), guides]


@lru_cache(maxsize=4096)
def place_text(file: str, line: int | None, base: str | None) -> str:
    """``data.py:45``; with folders where a base is given and the file is below it."""
    name = os.path.basename(file)
    if base is not None and file.startswith(os.path.join(base, "")):
        relative = os.path.relpath(file, base)
        name = relative if len(relative) <= 32 else name
    return printable(name if line is None else f"{name}:{line}")


def seconds_text(seconds: float) -> str:
    """``12.3 ms``."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    # By whole numbers, which is quicker: it is asked for at the end of each call.
    if seconds >= 0.001:
        tenths = int(seconds * 10_000 + 0.5)
        return f"{tenths // 10}.{tenths % 10} ms"
    return f"{int(seconds * 1_000_000 + 0.5)} µs"
