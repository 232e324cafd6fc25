"""The stack frame that is selected in the debugger."""

from dataclasses import dataclass
from typing import Final

from shapetrace.server.messages.declarations import NonEmptyStr, NonNegativeInt, Request


@dataclass(frozen=True, slots=True)
class StopReference:
    """A stop, as the agent's answer to the debugger names it."""

    session: NonEmptyStr
    process: NonNegativeInt
    """The process id."""
    number: NonNegativeInt


@dataclass(frozen=True, slots=True)
class Focus:
    """Selects the stop to show; None where no frame of a stopped program is selected."""

    stop: StopReference | None = None


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of a source file, counted from 1."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Focused:
    """Where the selected frame is; None where nothing is known of the stop."""

    place: SourceLine | None = None


FOCUS: Final = Request("shapetrace/focus", Focus, Focused)
