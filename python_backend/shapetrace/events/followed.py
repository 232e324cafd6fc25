"""The events of followed functions and variables, as frozen plain values.

    {"event": "began", "call": 7, "parent": 3, "function": "Dataset.transform", "line": 40, ...}
    {"event": "changed", "call": 7, "name": "video", "line": 45, "before": {...}, "after": {...},
     "differs": ["shape", "dtype"], ...}
    {"event": "ended", "call": 7, "outcome": "returned", "value": {...}, "seconds": 0.0123, ...}

Calls are numbered; a number is unique in a process. Events of one call come in the order in which
things happened; those of several threads or tasks may come in turns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from shapetrace._errors import TraceFileError
from shapetrace.events.model import JsonObject, Value
from shapetrace.events.schema import Mismatch, record_of


def _no_extra() -> JsonObject:
    return {}


TENSOR = "tensor"
ARRAY = "array"
SCALAR = "scalar"
CONTAINER = "container"
OTHER = "other"
REMOVED = "removed"
"""No value any more: what is followed in a variable was taken out of it."""

NEW = "new"
"""The variable had no value before, or what is followed in it was not there."""
KIND = "kind"
"""Another kind or class of value."""
SHAPE = "shape"
DTYPE = "dtype"
DEVICE = "device"
ITEMS = "items"
"""A container has other keys, or another number of items."""
VALUES = "values"
"""The content was compared, in whole or in part, and differs; or a number or a text differs."""
WRITTEN = "written"
"""Something has written into the same tensor or array; that its content differs is not known."""
ASSIGNED = "assigned"
"""Another object, alike in all that is above; its content was not compared."""
TOLERANCE = "tolerance"
"""The content differs by no more than the tolerance that was asked for."""


@dataclass(frozen=True, slots=True)
class FollowedStatistics:
    """The numbers of one tensor or array, read only where that was asked for."""

    total: int
    """How many numbers there are."""
    seen: int
    """How many of them were read."""
    low: float | None = None
    """The least finite number; None where there is none."""
    high: float | None = None
    mean: float | None = None
    not_numbers: int = 0
    infinite: int = 0
    true: int | None = None
    """How many are true, where these are truth values."""
    reason: str | None = None
    """Why nothing was read, in a few words."""
    extra: JsonObject = field(default_factory=_no_extra, hash=False)


@dataclass(frozen=True, slots=True)
class FollowedValue:
    """The description of one value at one moment."""

    kind: str
    """``tensor``, ``array``, ``scalar``, ``container``, ``other`` or ``removed``."""
    value: Value
    """Shape, dtype and device; the items; or a short text. ``views.shapes`` writes it."""
    statistics: FollowedStatistics | None = None
    extra: JsonObject = field(default_factory=_no_extra, hash=False)


@dataclass(frozen=True, slots=True)
class NamedValue:
    """An argument, or something that is followed when its call begins."""

    name: str
    value: FollowedValue
    followed: bool = False
    """Whether its changes will be reported."""
    argument: bool = True
    """Whether it is an argument, and not something in one, such as ``self.cache.k``."""
    extra: JsonObject = field(default_factory=_no_extra, hash=False)


@dataclass(frozen=True, slots=True)
class Caller:
    """A function that was calling."""

    function: str
    file: str
    line: int
    extra: JsonObject = field(default_factory=_no_extra, hash=False)


@dataclass(frozen=True, slots=True)
class CallBegan:
    """A followed function was called; of a generator: it was asked for its first value."""

    call: int
    parent: int | None
    """The innermost followed call that this one was made in."""
    depth: int
    """How many followed calls are around it."""
    function: str
    """The qualified name."""
    file: str
    """An absolute path."""
    line: int
    """The line of its ``def``."""
    callers: tuple[Caller, ...]
    """The innermost first; a few of them."""
    arguments: tuple[NamedValue, ...]
    flavor: str = "function"
    """``function``, ``generator``, ``coroutine`` or ``async generator``."""
    process: int = 0
    thread: str | None = None
    """What tells apart calls that run in turns, such as ``Thread-2``, ``Task-3`` or the name of a
    worker process; None for the main thread of the main process."""
    extra: JsonObject = field(default_factory=_no_extra, hash=False)


@dataclass(frozen=True, slots=True)
class PartChanged:
    """A part of a container that has changed."""

    path: str
    """Where it is, as Python writes it after the name: ``['video']``, ``[0].mask``."""
    before: FollowedValue | None
    after: FollowedValue | None
    differs: tuple[str, ...]
    extra: JsonObject = field(default_factory=_no_extra, hash=False)


@dataclass(frozen=True, slots=True)
class VariableChanged:
    """A followed variable has another value, or its value was changed in place."""

    call: int
    depth: int
    """How many followed calls are around its call."""
    name: str
    """As the user wrote it."""
    file: str
    line: int
    """The line that assigned it, or that ran what changed it."""
    before: FollowedValue | None
    """None where it had none."""
    after: FollowedValue
    differs: tuple[str, ...]
    """What is another: ``kind``, ``shape``, ``dtype``, ``device``, ``items``, ``values``, ...; the
    constants of this module say which and what they mean. Never empty."""
    parts: tuple[PartChanged, ...] = ()
    """Where it is a container: the first parts that changed."""
    more_parts: int = 0
    """How many more."""
    thread: str | None = None
    extra: JsonObject = field(default_factory=_no_extra, hash=False)


@dataclass(frozen=True, slots=True)
class CallEnded:
    """A followed call is over."""

    call: int
    depth: int
    function: str
    file: str
    line: int
    """The line that returned or raised."""
    outcome: str
    """``returned``; ``raised``; or ``closed``: a generator that was not run to its end."""
    value: FollowedValue | None
    """The return value, if it returned."""
    seconds: float
    """Since it began, with all that others did while it waited."""
    error: str | None = None
    """The class of what it raised, where that is known."""
    flavor: str = "function"
    thread: str | None = None
    extra: JsonObject = field(default_factory=_no_extra, hash=False)


@dataclass(frozen=True, slots=True)
class FollowingNote:
    """Something that the user should know, in one line: a name that is never assigned, say."""

    text: str
    function: str | None = None
    file: str | None = None
    line: int | None = None
    extra: JsonObject = field(default_factory=_no_extra, hash=False)


FollowedEvent: TypeAlias = CallBegan | VariableChanged | CallEnded | FollowingNote

_NAMES: dict[type, str] = {
    CallBegan: "began",
    VariableChanged: "changed",
    CallEnded: "ended",
    FollowingNote: "note",
}
_CLASSES = {name: event_class for event_class, name in _NAMES.items()}


def to_json(event: FollowedEvent) -> dict[str, Any]:
    """An event as plain dicts and lists."""
    return {"event": _NAMES[type(event)], **record_of(type(event)).write(event)}


def from_json(document: Mapping[str, object]) -> FollowedEvent | None:
    """The event of a JSON object; None if its kind is not known here."""
    event_class = _CLASSES.get(str(document.get("event")))
    if event_class is None:
        return None
    found = {key: value for key, value in document.items() if key != "event"}
    try:
        return cast(FollowedEvent, record_of(event_class).read(found))
    except Mismatch as mismatch:
        raise TraceFileError(f"not an event of following: {mismatch}") from None
