"""The calls of a line: which one is pinned, and what is shown beside the lines at a stop."""

from dataclasses import dataclass
from typing import Final, Literal

from shapetrace.server.messages.declarations import NonEmptyStr, Request, ServerNotification
from shapetrace.server.messages.document_places import DocumentPosition, Lines


@dataclass(frozen=True, slots=True)
class Pin:
    """A call that is pinned, or can be."""

    node: str
    """Its id in the trace tree."""
    label: str
    description: str
    is_waiting: bool = False
    """Whether the newest run has not made this call yet."""


@dataclass(frozen=True, slots=True)
class PinQuestion:
    """Asks to show the shapes of one call only; None shows all calls again."""

    node: NonEmptyStr | None
    """A node of the trace tree by its id."""


@dataclass(frozen=True, slots=True)
class Pinned:
    """Which call is pinned now, if any."""

    pin: Pin | None
    lost: str | None = None
    """The label of the call that was pinned, where the newest run has no such call."""


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of a line."""

    calls: tuple[Pin, ...]
    current: int | None
    """The index of the call that is shown, if it is one of these."""


@dataclass(frozen=True, slots=True)
class StepCall(DocumentPosition):
    """Asks to pin the next call of a line, or the one before."""

    direction: Literal[1, -1]


@dataclass(frozen=True, slots=True)
class InlineValue:
    """A text at the end of a line, counted from 0."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class InlineValues:
    """The values at line ends while the program is stopped."""

    values: tuple[InlineValue, ...]


CALLS: Final = Request("shapetrace/calls", DocumentPosition, Calls)
PIN: Final = Request("shapetrace/pin", PinQuestion, Pinned)
STEP_CALL: Final = Request("shapetrace/stepCall", StepCall, Pinned)
INLINE_VALUES: Final = Request("shapetrace/inlineValues", Lines, InlineValues)

PIN_CHANGED: Final = ServerNotification("shapetrace/pinChanged", Pinned)
"""Sent whenever a call is pinned, or none any more."""
