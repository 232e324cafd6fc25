"""The content of a file of captured values, as frozen plain values."""

from __future__ import annotations

from dataclasses import dataclass

from shapetrace.events.model import Value


@dataclass(frozen=True, slots=True)
class Histogram:
    """How often numbers lie in each of equally wide bins."""

    low: float
    """Where the first bin begins."""
    high: float
    """Where the last one ends."""
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Statistics:
    """The numbers of one tensor, over all times that it was captured."""

    total: int
    """How many numbers there are."""
    looked_at: int
    """How many of them the rest of this was made from."""
    low: float | None = None
    """The least finite number, None where there is none; of complex numbers, the magnitude."""
    high: float | None = None
    mean: float | None = None
    not_numbers: int = 0
    infinite: int = 0
    histogram: Histogram | None = None
    is_magnitude: bool = False


@dataclass(frozen=True, slots=True)
class CapturedLeaf:
    """One array in a captured value; the only one where the value is a tensor or a number."""

    path: str
    """Where it is in the value: empty, or ``.0.logits``."""
    value: Value
    """Its type and shape, as ranges where it was not always the same."""
    statistics: Statistics | None
    """None for what is no number."""


@dataclass(frozen=True, slots=True)
class CapturedPart:
    """Values of one name that are of one structure."""

    value: Value
    count: int
    leaves: tuple[CapturedLeaf, ...]


@dataclass(frozen=True, slots=True)
class CapturedName:
    """Everything that was captured under one name."""

    name: str
    count: int
    """How many values there are."""
    first_iteration: int | None
    last_iteration: int | None
    ranks: tuple[int, ...]
    parts: tuple[CapturedPart, ...]


@dataclass(frozen=True, slots=True)
class CapturedFile:
    """A file of captured values."""

    name: str
    size: int
    """Bytes on the disk, those of all ranks together."""
    names: tuple[CapturedName, ...]
    missing_ranks: tuple[int, ...] = ()
    """Ranks that took part and have left no file."""
    problems: tuple[str, ...] = ()
    """The values that could not be saved, as described by the writer."""
