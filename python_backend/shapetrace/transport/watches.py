"""What is told of watched variables: how each changed, where, and which calls run.

{"type": "watches",
 "names": ["video", "transform:mask"],
 "problems": [["vidoe", "nothing that was loaded assigns 'vidoe'"]],
 "sources": [["/home/me/pipeline.py", "9f86d081...", "import numpy ..."]],
 "running": [[7, "Dataset.transform", "/home/me/pipeline.py", 40]],
 "changes": [[0, 12, "Dataset.transform", 3, {"event": "changed", "name": "video", ...}]]}

Names, problems and running calls are there where something is new of them. A change is of the name
with that number, and the so-manieth of that, in the so-manieth call of a function. What a variable
had when its call began, as an argument has, is a change from nothing on the line of the ``def``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from shapetrace._errors import TraceFileError
from shapetrace.events.followed import VariableChanged, from_json, to_json
from shapetrace.events.update import Source
from shapetrace.transport.framing import Message

MOST_FIRST: Final = 100
MOST_LAST: Final = 400
"""Of the changes of one name so many of the first and of the last are kept; all are counted."""


@dataclass(frozen=True, slots=True)
class WatchedChange:
    """One change of what is watched."""

    name: int
    """The number of what was asked for."""
    ordinal: int
    """It is the so-manieth of that."""
    function: str
    """The qualified name, or ``<module>``."""
    call: int
    """It was in the so-manieth call of the function, as far as these are followed."""
    event: VariableChanged


@dataclass(frozen=True, slots=True)
class RunningCall:
    """A followed call that is not over."""

    call: int
    function: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class WatchNews:
    """What one message tells."""

    names: tuple[str, ...] | None = None
    """All that was asked for; None where that has been told. Numbers stay what they are."""
    problems: dict[str, str] | None = None
    """Why there is nothing of which name, all of them; None where that has been told."""
    sources: tuple[Source, ...] = ()
    """The files that the changes are in, told before these."""
    running: tuple[RunningCall, ...] | None = None
    """All calls that run now; None where that has been told."""
    changes: tuple[WatchedChange, ...] = ()


def watches_message(news: WatchNews) -> Message:
    """The message that tells something."""
    message: Message = {"type": "watches"}
    if news.names is not None:
        message["names"] = list(news.names)
    if news.problems is not None:
        message["problems"] = [list(each) for each in news.problems.items()]
    if news.sources:
        message["sources"] = [[it.path, it.digest, it.text] for it in news.sources]
    if news.running is not None:
        message["running"] = [[it.call, it.function, it.file, it.line] for it in news.running]
    if news.changes:
        message["changes"] = [
            [it.name, it.ordinal, it.function, it.call, to_json(it.event)] for it in news.changes
        ]
    return message


def read_watches(message: Message) -> WatchNews:
    """What a message tells; whatever in it is not as it should be is left out."""
    names, problems = message.get("names"), message.get("problems")
    running = message.get("running")
    return WatchNews(
        None if names is None else tuple(each for each in _list(names) if isinstance(each, str)),
        None if problems is None else dict(_pairs(problems)),
        tuple(_sources(message.get("sources"))),
        None if running is None else tuple(_calls(running)),
        tuple(_changes(message.get("changes"))),
    )


def _sources(rows: object) -> Iterator[Source]:
    for row in _list(rows):
        match row:
            case [str(path), (str() | None) as digest, (str() | None) as text]:
                yield Source(path, digest, text)


def _calls(rows: object) -> Iterator[RunningCall]:
    for row in _list(rows):
        match row:
            case [int(call), str(function), str(file), int(line)]:
                yield RunningCall(call, function, file, line)


def _changes(rows: object) -> Iterator[WatchedChange]:
    for row in _list(rows):
        match row:
            case [int(name), int(ordinal), str(function), int(call), dict(document)]:
                try:
                    event = from_json(document)
                except TraceFileError:
                    continue
                if isinstance(event, VariableChanged):
                    yield WatchedChange(name, ordinal, function, call, event)


def _pairs(rows: object) -> Iterator[tuple[str, str]]:
    for row in _list(rows):
        match row:
            case [str(first), str(second)]:
                yield first, second


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
