"""What the variables of a running function hold, while the program stands still."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from shapetrace.events.model import Value
from shapetrace.server.ranges import SourceRange
from shapetrace.views.shapes import value_text


@dataclass(frozen=True, slots=True)
class Held:
    """What one variable holds."""

    name: str
    value: Value
    stores: tuple[tuple[int, ...], ...]
    """Line, column, end line and end column of the names that are stored to, one of which put it
    there; the first line alone of a function whose parameter it is."""
    is_fresh: bool = False
    """Whether that was certainly in the present turn: the iteration of a loop, or the call."""


@dataclass(frozen=True, slots=True)
class Locals:
    """What the variables of a function hold."""

    variables: tuple[Held, ...] = ()
    unbound: frozenset[str] | None = None
    """Names that have never been stored to; None where nothing is known of its variables."""

    @property
    def are_known(self) -> bool:
        """Whether the variables were looked at."""
        return self.unbound is not None

    def stored_at(self, targets: Sequence[SourceRange]) -> Held | None:
        """The variable whose value was stored at one of some places, and nowhere else."""
        wanted = {(target,) for target in targets}
        return next((each for each in self.variables if each.stores in wanted), None)

    def passed(self, name: str, line: int) -> Held | None:
        """The parameter by a name of the function that begins on a line, if it is that still."""
        wanted = ((line,),)
        return next((it for it in self.variables if it.name == name and it.stores == wanted), None)

    def stored_last(self, target: SourceRange) -> Held | None:
        """The variable that was stored at a place, or at one further up, and not further down."""
        return next((each for each in self.variables if max(each.stores) == target), None)


NOTHING_KNOWN: Final = Locals()


def is_among(value: Value, others: Collection[Value]) -> bool:
    """Whether a value would be written like one of some others."""
    text = value_text(value)
    return any(value_text(other) == text for other in others)
