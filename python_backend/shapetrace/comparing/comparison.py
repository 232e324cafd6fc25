"""The result of a comparison of two traces, as frozen plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from shapetrace.events.model import ModuleCall, Op, Run, Value

Event: TypeAlias = ModuleCall | Op

Kind: TypeAlias = Literal[
    "only",
    "op",
    "error",
    "arguments",
    "shape",
    "dtype",
    "device",
    "values",
    "gradient",
    "layout",
    "calls",
    "order",
    "name",
]
"""What can differ: a call that only one of them made, which op or class of module it is, the error
that ended it, its arguments that are no tensors, of its tensors the shape, dtype, device, values,
whether they need a gradient, layout and class; how often it was made, when, what it is called."""

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

MINOR: Final[frozenset[Kind]] = frozenset({"gradient", "layout", "calls", "order", "name"})
"""What is told first only where nothing else differs: none of it changes what is computed, or the
moment when it began to differ is not known."""

Part: TypeAlias = Literal["call", "input", "output"]


@dataclass(frozen=True, slots=True)
class Apart:
    """How far the values of two tensors are apart."""

    amount: float
    """The largest difference, as a multiple of what is tolerated; may be infinite."""
    relative: float
    """That difference, relative to how large the numbers are."""
    tolerance: float
    where: str
    """The number that differs most: ``mean``, ``samples``, ``nan``, ..."""
    first: int = 1
    """The first of the calls that were merged into one event in which it is, from 1."""
    last: int = 1
    is_new: bool = True
    """Whether the same numbers were not found to differ before: a view only passes them on, and so
    does a module that returns what the last op in it gave."""


@dataclass(frozen=True, slots=True)
class Aspect:
    """One thing that differs in a call that both runs made."""

    kind: Kind
    part: Part
    position: int | None = None
    """Which of the inputs or outputs, from 0; None for the call, or for how many there are."""
    a: Value | None = None
    """The value in A; None if A has none."""
    b: Value | None = None
    apart: Apart | None = None
    """Of values only."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A call that only one run made, or one that both made and that is not alike in them."""

    kind: Kind
    """The most important kind of its aspects."""
    a: Event | None
    """None where only B made the call."""
    b: Event | None
    module_a: ModuleCall | None
    """The module call it was made in."""
    module_b: ModuleCall | None
    aspects: tuple[Aspect, ...] = ()
    alike_before: int = 0
    """How many ops came before it that are alike in both."""
    inside: int = 0
    """How many ops are inside a module call that only one of them made."""


@dataclass(frozen=True, slots=True)
class Throughout:
    """A difference in so many places that it is reported once."""

    kind: Kind
    a: str
    b: str
    places: int
    """In how many places this is so."""
    of: int
    """Of how many where it could be."""
    first: Difference | None = None
    """The first place."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two runs."""

    run: Run
    modules: int
    """Module calls, calls that were merged counted."""
    ops: int
    kernels: int
    fingerprinted: bool
    """Whether something is known of its values."""
    unseen: tuple[str, ...] = ()
    """Code that ran in it and was not recorded, such as compiled code."""


@dataclass(frozen=True, slots=True)
class Paired:
    """A call of either run or of both, and its place among the others."""

    a: Event | None
    b: Event | None
    phase: Literal["op", "enter", "leave"]
    """A module call that both made is entered and left, with what is in it between."""
    difference: int | None = None
    """Which of the differences is there."""
    inside: int = 0
    """How many ops are inside a module call that only one of them made."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that is to be said of two traces."""

    a: Side
    b: Side
    alike: int
    """Ops that both made, and in which nothing differs but what does so throughout."""
    compared: int
    """Ops that both made."""
    throughout: tuple[Throughout, ...]
    differences: tuple[Difference, ...]
    """In the order in which the calls were first made."""
    first: Difference | None
    """The first of them that matters: of a minor kind only if all are."""
    notes: tuple[str, ...] = ()
    """Notes on parts that were not compared, and why."""
    steps: tuple[Paired, ...] = ()
    """All that both did, nested as they were; only where that was asked for."""

    @property
    def differ(self) -> bool:
        """Whether there is any difference."""
        return bool(self.differences or self.throughout)


def largest(comparison: Comparison, most: int) -> list[Difference]:
    """The differences of values that are furthest apart."""
    telling = [item for item in comparison.differences if extent(item) > 0 and not is_passed(item)]
    return sorted(telling, key=extent, reverse=True)[:most]


def is_passed(difference: Difference) -> bool:
    """Return whether it is nothing but values that were found to differ before."""
    return difference.kind == "values" and all(
        aspect.apart is not None and not aspect.apart.is_new
        for aspect in difference.aspects
        if aspect.kind == "values"
    )


def extent(difference: Difference) -> float:
    """How far its values are apart, as a multiple of what is tolerated; 0 where none are."""
    return max((aspect.apart.amount for aspect in difference.aspects if aspect.apart), default=0.0)
