"""How a watched variable changed, in one short line: ``video u8[2,3] → f32[3,2]``.

Where several values were seen, each side says what they have in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from shapetrace.events.followed import FollowedValue, VariableChanged
from shapetrace.events.model import Value
from shapetrace.views.followed import WORDS
from shapetrace.views.labels import merged_text
from shapetrace.views.shapes import CUT, cut_end, value_text
from shapetrace.views.styled import printable

ARROW: Final = " → "
_LEAST: Final = 8
"""Characters for a shape that still says something."""


def line_text(
    name: str, befores: Sequence[Value], afters: Sequence[Value], is_new: bool, length: int
) -> str:
    """A variable before and after a line; with ``is_new`` it was unset at times."""
    left = f"{printable(name)} "
    room = max(length - len(left), _LEAST)
    after = merged_text(afters)
    before = merged_text(befores) if befores else ""
    if not before or before == after or is_new:
        return cut_end(left + _fitted(afters, room), length)
    if len(before) + len(ARROW) + len(after) <= room:
        return left + before + ARROW + after
    # What it is now says more than what it was.
    half = (room - len(ARROW)) // 2
    if half < _LEAST:
        return cut_end(left + _fitted(afters, room), length)
    second = _fitted(afters, max(half, room - len(ARROW) - len(before)))
    first = _fitted(befores, room - len(ARROW) - len(second))
    return cut_end(left + first + ARROW + second, length)


def change_text(event: VariableChanged, length: int | None = None) -> str:
    """One change: ``u8[2,3] → f32[2,3]``, ``f32[2,3]  values changed``."""
    after = printable(value_text(event.after.value, length))
    if event.before is None:
        return after
    words = [WORDS[each] for each in event.differs if each in WORDS]
    before = printable(value_text(event.before.value, length))
    if before != after:
        return before + ARROW + after
    parts = _parts_text(event)
    if parts:
        return f"{after}  {parts}"
    return f"{after}  {', '.join(words)}" if words else after


def _parts_text(event: VariableChanged) -> str:
    """The changes of a container."""
    if not event.parts:
        return ""
    first = event.parts[0]
    text = f"{first.path} {_optional(first.before)}{ARROW}{_optional(first.after)}"
    others = len(event.parts) - 1 + event.more_parts
    return printable(f"{text} and {others} more" if others else text)


def _optional(value: FollowedValue | None) -> str:
    return CUT if value is None else value_text(value.value)


def _fitted(values: Sequence[Value], room: int) -> str:
    text = merged_text(values)
    return text if len(text) <= room else merged_text(values, room)
