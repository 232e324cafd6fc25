"""Where a stopped program is: the call of a stack frame, and what its functions have done."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

from shapetrace.events.checks import Refused, check_path, check_place
from shapetrace.events.model import Value

Place: TypeAlias = tuple[int, ...]
"""Line, column, end line and end column of a name that is assigned to; of a parameter the first
line of its function alone."""


def _check_line(name: str, line: int) -> None:
    check_place(line)


def _check_stores(name: str, stores: Sequence[Place]) -> None:
    if not stores or any(len(each) not in (1, 4) for each in stores):
        raise Refused(f"{name} are not places of names")
    for each in stores:
        check_place(*each)


@dataclass(frozen=True, slots=True)
class LocalVariable:
    """The value of a local variable, and where it was assigned."""

    name: str
    value: Value
    stores: Annotated[tuple[Place, ...], _check_stores]
    """The places of which one assigned it."""
    is_fresh: bool = False
    """Whether that was certainly in this iteration of the loop, or in this call."""


@dataclass(frozen=True, slots=True)
class Locals:
    """The local variables of a function."""

    variables: tuple[LocalVariable, ...] = ()
    """Those that hold tensors and look as they did when they were assigned."""
    unbound: frozenset[str] | None = None
    """Names that have never been assigned to; None where the variables cannot be read."""

    @property
    def are_known(self) -> bool:
        """Whether the variables could be read."""
        return self.unbound is not None

    def assigned_at(self, places: Iterable[Place]) -> LocalVariable | None:
        """The variable that was assigned at one of these places, and certainly nowhere else."""
        wanted = {(place,) for place in places}
        return next((each for each in self.variables if each.stores in wanted), None)

    def parameter(self, name: str, line: int) -> LocalVariable | None:
        """The parameter of the function that begins on a line, unless it was assigned to since."""
        wanted = ((line,),)
        return next((it for it in self.variables if it.name == name and it.stores == wanted), None)

    def assigned_last_at(self, place: Place) -> LocalVariable | None:
        """The variable whose last possible assignment in the source is at a place."""
        return next((each for each in self.variables if max(each.stores) == place), None)


NOTHING_KNOWN: Final = Locals()


@dataclass(frozen=True, slots=True)
class StoppedFunction:
    """How far a function on the stack has come."""

    file: Annotated[str, check_path]
    function: str
    """The qualified name."""
    line: Annotated[int, _check_line]
    reached: frozenset[int]
    """The ids of the ops and module calls that it has made itself, in this call so far."""
    locals: Locals = NOTHING_KNOWN


@dataclass(frozen=True, slots=True)
class Stop:
    """Where a stack frame of a stopped program is."""

    call: int | None
    """The id of the module call that it runs in; None outside of any."""
    own: StoppedFunction
    """The function of the frame."""
    outer: tuple[StoppedFunction, ...] = ()
    """The functions that wait for it, the innermost first."""
