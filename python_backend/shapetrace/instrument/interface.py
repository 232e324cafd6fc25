"""What somebody who follows a function wants to hear, and how it is told."""

from __future__ import annotations

import types
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Interest:
    """What is to be heard of a function."""

    names: frozenset[str] | None
    """Its variables, as the source calls them. None: all of them."""
    returns: bool
    nested: tuple[str, ...] = ()
    """The way from the function to one that is defined in it, by names of functions and classes."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call that has just begun."""

    function: types.FunctionType
    """The function that is followed; for a nested one the function that it is defined in."""
    first: object
    """The value of the first parameter, as `self`. None if there is none."""
    line: int
    """The line of the `def`."""


class Listener(Protocol):
    """Hears of calls. What it raises ends the following and is kept there."""

    def entered(self, call: Call) -> object | None:
        """A call has begun. What this returns is given back below; None: nothing more of it."""

    def looked_at(self, state: object, name: str, value: object, line: int, assigned: bool) -> None:
        """A variable was assigned on this line, or may have been changed in place by it."""

    def returned(self, state: object, value: object, line: int) -> None:
        """The call has returned this, if not by an exception."""
