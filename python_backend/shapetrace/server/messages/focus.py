"""The stack frame that is selected in the debugger."""

from dataclasses import dataclass
from types import NoneType
from typing import Annotated, Any, Final

from shapetrace.server.messages.declarations import NonEmptyStr, NonNegativeInt, Request, Unread


@dataclass(frozen=True, slots=True)
class FocusVariable:
    """A local variable of a stopped function."""

    name: NonEmptyStr
    value: Annotated[Any, Unread()]
    """As the agent writes values; only the server reads it."""
    stores: tuple[tuple[int, ...], ...]
    """The stores that may have set it: line, column, end line and end column of each name that is
    assigned to; the first line of the function alone for a parameter."""
    is_fresh: bool
    """Whether it was certainly set in this iteration of the loop, or in this call."""


@dataclass(frozen=True, slots=True)
class FocusOutside:
    """How far a function on the stack has come."""

    reached: tuple[int, ...]
    """The ids of the calls that it has made so far."""
    file: NonEmptyStr
    function: NonEmptyStr
    line: NonNegativeInt
    variables: tuple[FocusVariable, ...] = ()
    unbound: tuple[str, ...] | None = None
    """The names that have not been assigned to; None where nothing is known of the variables."""


@dataclass(frozen=True, slots=True)
class Focus:
    """The stack frame that is selected; without a process there is none."""

    session: NonEmptyStr
    process: int | None = None
    call: int | None = None
    """The id of the module call that the frame belongs to; None outside of any."""
    reached: tuple[int, ...] | None = None
    """The ids of the calls that the frame's function has made so far."""
    file: NonEmptyStr | None = None
    function: NonEmptyStr | None = None
    line: int | None = None
    variables: tuple[FocusVariable, ...] = ()
    unbound: tuple[str, ...] | None = None
    """The names that have not been assigned to; None where nothing is known of the variables."""
    outer: tuple[FocusOutside, ...] = ()
    """The functions that called it, the innermost first."""


FOCUS: Final = Request("shapetrace/focus", Focus, NoneType)
