"""Renders events as text for one stream, with a cache, as most lines repeat."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from shapetrace.events import followed
from shapetrace.events.followed import (
    CallBegan,
    CallEnded,
    Caller,
    FollowedEvent,
    FollowedValue,
    VariableChanged,
)
from shapetrace.views.followed import (
    FollowedOptions,
    ended_line,
    event_text,
    seconds_text,
    time_span,
)
from shapetrace.views.styled import Line, StyledText
from shapetrace.views.terminal_text import to_text

_MOST_KNOWN: Final = 2048
_SAMPLE: Final = 1e-6
_SHARED: Final = (followed.TENSOR, followed.ARRAY, followed.SCALAR, followed.OTHER)
"""Kinds of values whose descriptions are shared objects."""


class Rendering:
    """Renders events for one stream."""

    def __init__(self, options: FollowedOptions, color: bool, encoding: str | None) -> None:
        self._options = options
        self._color = color
        self._encoding = encoding
        self.known: dict[object, tuple[str, object]] = {}
        """Rendered lines by key, with the described values, which keeps their ids unique."""
        sample = self.lines([(time_span(_SAMPLE),)])
        self._around_time = sample.split(seconds_text(_SAMPLE))
        """The text before and after a duration."""

    def lines(self, lines: Iterable[Line]) -> str:
        """Lines as text."""
        text = StyledText(tuple(lines))
        return to_text(text, color=self._color, encoding=self._encoding)

    def text_of(self, event: FollowedEvent) -> str:
        """The lines of an event."""
        if type(event) is VariableChanged:
            return self._changed(event)
        if type(event) is CallEnded:
            return self._ended(event)
        if type(event) is CallBegan:
            return self._began(event)
        return self.lines(event_text(event, self._options).lines)

    def timed(self, text: str, seconds: float) -> str:
        """The line of a call's end, with its duration."""
        if len(self._around_time) != 2:  # the encoding has no µ
            return text + self.lines([(time_span(seconds),)])
        before, after = self._around_time
        return f"{text}{before}{seconds_text(seconds)}{after}"

    def _changed(self, event: VariableChanged) -> str:
        before, after = event.before, event.after
        if event.parts or not _is_shared(after) or not (before is None or _is_shared(before)):
            return self.lines(event_text(event, self._options).lines)
        key = change_key(
            *(event.file, event.name, event.line, event.depth, event.thread),
            *(event.differs, before, after),
        )
        known = self.known.get(key)
        if known is None:
            text = self.lines(event_text(event, self._options).lines)
            return self._keep(key, text, (before, after))
        return known[0]

    def _began(self, event: CallBegan) -> str:
        text = self.lines(event_text(event, self._options).lines)
        values = [argument.value for argument in event.arguments]
        if all(map(_is_shared, values)):
            key = call_key(
                *(event.file, event.line, event.depth, event.thread, event.callers),
                names_key(event.function, [argument.name for argument in event.arguments]),
                map(id, values),
            )
            self._keep(key, text, (event.callers, values))
        return text

    def _ended(self, event: CallEnded) -> str:
        value = event.value
        key = end_key(
            *(event.file, event.line, event.depth, event.thread, event.flavor),
            *(event.outcome, event.error, value),
        )
        known = self.known.get(key)
        if known is not None:
            return self.timed(known[0], event.seconds)
        text = self.lines([ended_line(event, self._options)]).removesuffix("\n")
        if value is None or _is_shared(value):
            self._keep(key, text, value)
        return self.timed(text, event.seconds)

    def _keep(self, key: object, text: str, described: object) -> str:
        if len(self.known) >= _MOST_KNOWN:
            self.known.clear()
        self.known[key] = (text, described)
        return text


def change_key(
    file: str,
    name: str,
    line: int,
    depth: int,
    thread: str | None,
    differs: tuple[str, ...],
    before: FollowedValue | None,
    after: FollowedValue,
) -> object:
    """The cache key of a change's line."""
    return (file, name, line, depth, thread, differs, id(before), id(after))


def call_key(
    file: str,
    line: int,
    depth: int,
    thread: str | None,
    callers: tuple[Caller, ...],
    names: str,
    values: Iterable[int],
) -> object:
    """The cache key of a call's lines, with the ids of callers and values."""
    return (file, line, depth, thread, tuple(map(id, callers)), names, *values)


def names_key(function: str, names: Iterable[str]) -> str:
    """The cache key of the names in a call's lines: a reloaded file may have others."""
    return "\0".join((function, *names))


def end_key(
    file: str,
    line: int,
    depth: int,
    thread: str | None,
    flavor: str,
    outcome: str,
    error: str | None,
    value: FollowedValue | None,
) -> object:
    """The cache key of a call's last line, without its duration."""
    return (file, line, depth, thread, flavor, outcome, error, id(value))


def _is_shared(value: FollowedValue) -> bool:
    return value.kind in _SHARED and value.statistics is None
