"""Comparing traces for the editor."""

from __future__ import annotations

from typing import Final

from shapetrace._errors import TraceFileError
from shapetrace.comparing.compare import compare
from shapetrace.comparing.comparison import Comparison, Difference, Event, is_passed
from shapetrace.events.model import ModuleCall, Trace
from shapetrace.events.trace_loading import load_calls
from shapetrace.server.messages.comparison import Compare, Compared, ComparedCall, ComparedPlace
from shapetrace.views.difference_text import KIND_WORDS, call_text, event_of, notes_of, short_text
from shapetrace.views.differences_text import heading_text, summary_text, throughout_text
from shapetrace.views.side_by_side import side_by_side
from shapetrace.views.source_files import read_source

_MOST: Final = 1_000
"""The most differences that are listed."""


def compare_for_editor(question: Compare, recorded: Trace | None) -> Compared:
    """Compare two traces, of which one may be what was recorded; takes as long as it takes."""
    a, b = (_trace(path, recorded) for path in (question.a, question.b))
    comparison = compare(a, b, read_source=read_source, whole=True)
    sides = side_by_side(comparison)
    listed = [
        (position, item)
        for position, item in enumerate(comparison.differences)
        if item is comparison.first or not is_passed(item)
    ][:_MOST]
    calls = tuple(_call(item, *sides.lines[position]) for position, item in listed)
    first = next((at for at, (_, item) in enumerate(listed) if item is comparison.first), None)
    return Compared(sides.left, sides.right, calls, first, _summary(comparison))


def _trace(path: str | None, recorded: Trace | None) -> Trace:
    if path is not None:
        return load_calls(path)
    if recorded is None:
        raise TraceFileError("nothing is recorded in this window yet; trace a forward pass first")
    return recorded


def _summary(comparison: Comparison) -> str:
    parts: list[str] = []
    if comparison.first is not None:
        parts.append(f"{heading_text(comparison.first)}.")
    for item in comparison.throughout:
        what, places = throughout_text(item)
        parts.append(f"Throughout: {what} ({places}).")
    parts += summary_text(comparison) if comparison.differ else ["The runs are alike."]
    parts += [f"Note: {note}." for note in notes_of(comparison)]
    return " ".join(parts)


def _call(item: Difference, left: int, right: int) -> ComparedCall:
    event = event_of(item)
    module = event if isinstance(event, ModuleCall) else item.module_a or item.module_b
    path = "" if module is None else module.path
    title = "  ".join(filter(None, [path, call_text(event).partition("(")[0]]))
    return ComparedCall(
        kind=KIND_WORDS[item.kind],
        title=title,
        detail=short_text(item),
        left=left,
        right=right,
        a=_place(item.a),
        b=_place(item.b),
    )


def _place(event: Event | None) -> ComparedPlace | None:
    if event is None or event.file is None or event.line is None:
        return None
    return ComparedPlace(event.file, event.line)
