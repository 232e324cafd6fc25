"""What is sent of watched variables: how each changed, where, and which calls run.

{"type": "watches",
 "names": ["video", "transform:mask"],
 "problems": [["vidoe", "nothing that was loaded assigns 'vidoe'"]],
 "sources": [["/home/me/pipeline.py", "9f86d081...", "import numpy ..."]],
 "running": [[7, "Dataset.transform", "/home/me/pipeline.py", 40]],
 "changes": [[0, 12, "Dataset.transform", 3, [7, 0, "video", "/home/me/pipeline.py", 45, ...]]]}

What a variable had when its call began, as an argument has, is a change from nothing on the line of
the ``def``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from shapetrace.events.checks import check_path, check_place
from shapetrace.events.followed import VariableChanged
from shapetrace.events.update import Source

MOST_FIRST: Final = 100
MOST_LAST: Final = 400
"""The first and the last changes of one name that are kept, on either side; all are counted."""


def _check_line(name: str, line: int) -> None:
    check_place(line)


def _check_event(name: str, event: VariableChanged) -> None:
    check_path("file", event.file)
    check_place(event.line)


def _check_source(name: str, source: Source) -> None:
    check_path("path", source.path)


@dataclass(frozen=True, slots=True)
class WatchedChange:
    """One change of what is watched."""

    name: int
    """Position of the name among those that were asked for, from 0."""
    ordinal: int
    """Position among the changes of this name, from 1."""
    function: str
    """The qualified name, or ``<module>``."""
    call: int
    """Position of the call among the calls of the function that are followed, from 1."""
    event: Annotated[VariableChanged, _check_event]


@dataclass(frozen=True, slots=True)
class RunningCall:
    """A followed call that is not over."""

    call: int
    function: str
    file: Annotated[str, check_path]
    line: Annotated[int, _check_line]


@dataclass(frozen=True, slots=True)
class WatchNews:
    """What is new of watched variables, for the server."""

    names: tuple[str, ...] | None = None
    """All names that were asked for, also before; None where the server knows them."""
    problems: dict[str, str] | None = None
    """All reasons why there is nothing of a name; None where the server knows them."""
    sources: tuple[Annotated[Source, _check_source], ...] = ()
    """The files that the changes are in; each is sent before the first change in it."""
    running: tuple[RunningCall, ...] | None = None
    """All calls that run now; None where the server knows them."""
    changes: tuple[WatchedChange, ...] = ()
