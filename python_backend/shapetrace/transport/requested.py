"""What is sent of requested things: captured values, and changes of watched variables.

Of a captured value these are a few numbers, and never the value itself:

{"type": "captures",
 "requests": ["layers.*.forward", "forward.mask"],
 "problems": [["forward.mask", "matches nothing"]],
 "names": [[1, "layers.0.forward", "layers.*.forward", "Net"]],
 "items": [[1, 3, 12, "train", "Tensor", "float32", [2, 4], "cpu", "",
            [8, 8, -1.2, 3.4, 0.1, 0, 0, [1, 0, 5, 2]]]]}

Of a watched variable, how it changed and where, and which calls run. What it had when its call
began, as an argument has, is a change from nothing on the line of the ``def``:

{"type": "watches",
 "requests": ["video", "transform:mask"],
 "problems": [["vidoe", "nothing that was loaded assigns 'vidoe'"]],
 "names": [[0, "video", "video", ""]],
 "items": [[0, 12, "Dataset.transform", 3, [7, 0, "video", "/home/me/pipeline.py", 45, ...]]],
 "sources": [["/home/me/pipeline.py", "9f86d081...", "import numpy ..."]],
 "running": [[7, "Dataset.transform", "/home/me/pipeline.py", 40]]}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from shapetrace.events.checks import Refused, check_path, check_place
from shapetrace.events.followed import VariableChanged
from shapetrace.events.update import Source

BINS: Final = 16
"""Parts of the range between the smallest and the largest number that are counted in."""


class Limits(NamedTuple):
    """The items of one name that are kept, on either side; all are counted."""

    first: int
    last: int


CAPTURED: Final = Limits(0, 256)
WATCHED: Final = Limits(100, 400)

Mode: TypeAlias = Literal["train", "eval"]


def _check_bins(name: str, counts: tuple[int, ...]) -> None:
    if len(counts) > BINS or any(count < 0 for count in counts):
        raise Refused(f"{name} are no numbers of values in parts of a range")


def _check_line(name: str, line: int) -> None:
    check_place(line)


def _check_event(name: str, event: VariableChanged) -> None:
    check_path("file", event.file)
    check_place(event.line)


def _check_source(name: str, source: Source) -> None:
    check_path("path", source.path)


@dataclass(frozen=True, slots=True)
class RequestedName:
    """The name of what came of a request."""

    number: int
    name: str
    request: str
    """The path or variable that the user asked for."""
    model: str = ""
    """For captured values, the class of the outermost module that they are in."""


@dataclass(frozen=True, slots=True)
class RequestedItem:
    """One thing that came of a request."""

    name: int
    """The number of its name."""
    ordinal: int
    """Position among the items of this name, from 1."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """The numbers of one tensor or array, or of one number."""

    numbers: int
    """How many there are."""
    seen: int
    """How many of them were looked at."""
    low: float | None
    """The smallest that is finite; None where none is."""
    high: float | None
    mean: float | None
    nans: int = 0
    infinities: int = 0
    bins: Annotated[tuple[int, ...], _check_bins] = ()
    """How many of those that were looked at lie in each part between the smallest and largest."""


@dataclass(frozen=True, slots=True)
class CapturedValue(RequestedItem):
    """One value at one moment."""

    iteration: int
    mode: Mode
    kind: str
    """``Tensor``, or another class."""
    dtype: str = ""
    shape: tuple[int, ...] | None = None
    device: str = "cpu"
    text: str = ""
    """The value in a few words, where it is no tensor."""
    statistics: Statistics | None = None


@dataclass(frozen=True, slots=True)
class WatchedChange(RequestedItem):
    """One change of what is watched."""

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


Item = TypeVar("Item", bound=RequestedItem)


@dataclass(frozen=True, slots=True)
class RequestedNews(Generic[Item]):
    """What is new of requested things, for the server."""

    requests: tuple[str, ...] | None = None
    """All that was asked for, also before; None where the server knows it."""
    problems: dict[str, str] | None = None
    """All that is wrong, by request; None where the server knows it."""
    names: tuple[RequestedName, ...] = ()
    """The new names; each is sent before the first of its items."""
    items: tuple[Item, ...] = ()


@dataclass(frozen=True, slots=True)
class CaptureNews(RequestedNews[CapturedValue]):
    """What is new of captured values."""

    items: tuple[CapturedValue, ...] = ()


@dataclass(frozen=True, slots=True)
class WatchNews(RequestedNews[WatchedChange]):
    """What is new of watched variables."""

    items: tuple[WatchedChange, ...] = ()
    sources: tuple[Annotated[Source, _check_source], ...] = ()
    """The files that the changes are in; each is sent before the first change in it."""
    running: tuple[RunningCall, ...] | None = None
    """All calls that run now; None where the server knows them."""
