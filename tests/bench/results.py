"""What a benchmark hands back, as plain values: the report is made from these alone."""

from __future__ import annotations

from dataclasses import dataclass

from tests.bench.timing import Spread


@dataclass(frozen=True)
class Bar:
    """A figure with the bar it has to meet."""

    row: str
    case: str
    bar: str
    reached: str
    passed: bool


@dataclass(frozen=True)
class Line:
    """What one contender took."""

    contender: str
    to_plain: Spread | None = None
    """None where the contender is not installed."""
    to_other: Spread | None = None
    """Beside what the comparison names as its other base."""
    first_pass: Spread | None = None
    """One forward pass in a recording of its own, starting and stopping it included."""


@dataclass(frozen=True)
class Comparison:
    """Contenders that did the same work side by side."""

    title: str
    lines: tuple[Line, ...]
    other: str = "empty mode"
    base: str = "plain"
    """What times are compared with first."""


@dataclass(frozen=True)
class Table:
    """Any other figures, as rows of text."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Result:
    """Everything one benchmark found."""

    bars: tuple[Bar, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    tables: tuple[Table, ...] = ()
