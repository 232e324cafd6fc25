"""What is sent of captured values: a few numbers of each, and never the values themselves.

{"type": "captures",
 "paths": ["layers.*.forward", "forward.mask"],
 "problems": [["forward.mask", "matches nothing"]],
 "names": [[1, "layers.0.forward", "layers.*.forward", "Net"]],
 "values": [[1, 3, 12, "train", "Tensor", "float32", [2, 4], "cpu", "",
             [8, 8, -1.2, 3.4, 0.1, 0, 0, [1, 0, 5, 2]]]]}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

from shapetrace.events.checks import Refused

BINS: Final = 16
"""Parts of the range between the smallest and the largest number that are counted in."""

MOST_KEPT: Final = 256
"""The newest values of one name that are kept, on either side; the rest are counted."""

Mode: TypeAlias = Literal["train", "eval"]


def _check_bins(name: str, counts: tuple[int, ...]) -> None:
    if len(counts) > BINS or any(count < 0 for count in counts):
        raise Refused(f"{name} are no numbers of values in parts of a range")


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
class CapturedValue:
    """One value at one moment."""

    name: int
    """The number of its name."""
    ordinal: int
    """Position among the values of this name, from 1."""
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
class CapturedName:
    """What captured values are called, and why they are captured."""

    number: int
    name: str
    path: str
    """The path that was asked for."""
    model: str
    """The class of the outermost module that it is in."""


@dataclass(frozen=True, slots=True)
class CaptureNews:
    """What is new of captured values, for the server."""

    paths: tuple[str, ...] | None = None
    """All paths that were asked for; None where the server knows them."""
    problems: dict[str, str] | None = None
    """All that is wrong, by path; None where the server knows it."""
    names: tuple[CapturedName, ...] = ()
    values: tuple[CapturedValue, ...] = ()
