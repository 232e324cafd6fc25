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

from dataclasses import dataclass
from typing import Any, Final

from shapetrace._errors import TraceFileError
from shapetrace.events import columns
from shapetrace.events.checks import (
    NUMBER,
    TEXT,
    Columns,
    Refused,
    check_document,
    check_path,
    check_place,
    pair_in,
    read_each,
    text_in,
)
from shapetrace.events.followed import VariableChanged, from_json, to_json
from shapetrace.events.update import Source
from shapetrace.transport.framing import Message

MOST_FIRST: Final = 100
MOST_LAST: Final = 400
"""Of the changes of one name so many of the first and of the last are kept; all are counted."""


_RUNNING = Columns(call=NUMBER, function=TEXT, file=TEXT, line=NUMBER)
_CHANGE = Columns(name=NUMBER, ordinal=NUMBER, function=TEXT, call=NUMBER, event=(dict,))


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


def read_watches(message: Message) -> tuple[WatchNews, list[str]]:
    """What a message tells, and what is wrong with those of its rows that are left out."""
    refused: list[str] = []
    names, problems = message.get("names"), message.get("problems")
    running = message.get("running")
    news = WatchNews(
        None if names is None else tuple(read_each("names", text_in, names, refused)),
        None if problems is None else dict(read_each("problems", pair_in, problems, refused)),
        tuple(read_each("sources", _read_source, message.get("sources", ()), refused)),
        None if running is None else tuple(read_each("running", _read_call, running, refused)),
        tuple(read_each("changes", _read_change, message.get("changes", ()), refused)),
    )
    return news, refused


def _read_source(row: Any) -> Source:
    columns.SOURCE.check_closely(row)
    check_path("path", row[0])
    return Source(*row)


def _read_call(row: Any) -> RunningCall:
    _RUNNING.check_closely(row)
    call = RunningCall(*row)
    check_path("file", call.file)
    check_place(call.line)
    return call


def _read_change(row: Any) -> WatchedChange:
    _CHANGE.check_closely(row)
    name, ordinal, function, call, document = row
    check_document("event", document)
    try:
        event = from_json(document)
    except TraceFileError as error:
        raise Refused(str(error)) from None
    if not isinstance(event, VariableChanged):
        raise Refused("it is no change of a variable")
    check_path("file", event.file)
    check_place(event.line)
    return WatchedChange(name, ordinal, function, call, event)
