"""What somebody who follows a function wants to hear, and how it is told."""

from __future__ import annotations

import types
from dataclasses import dataclass
from typing import NamedTuple, Protocol


@dataclass(frozen=True, slots=True)
class Interest:
    """What is to be heard of a function."""

    names: frozenset[str] | None
    """Its variables, as the source calls them. None: all of them."""
    returns: bool
    nested: tuple[str, ...] = ()
    """The way from the function to one that is defined in it, by names of functions and classes."""
    merges: bool = True
    """Whether a comprehension's variable is heard of where the function has one of that name."""


class Call(NamedTuple):
    """One call that has just begun."""

    function: types.FunctionType
    """The function that is followed; for a nested one the function that it is defined in."""
    first: object
    """The value of the first parameter, as `self`; with `*args` only, the first of them. None if
    there is none."""
    line: int
    """The line of the `def`."""


class Listener(Protocol):
    """Hears of calls. What it raises ends the following and is kept there."""

    # It has entered(call), which is called when a call has begun. What that returns is given back
    # below; None: nothing more of the call is heard. In place of it a listener may have
    # entered_by(first), with the first parameter, or entered_with(frame, arguments), with all of
    # them in the order in which they are written, which are then not looked at once more.

    def looked_at(self, state: object, name: str, value: object, line: int, assigned: bool) -> None:
        """A variable was assigned on this line, or may have been changed in place by it."""

    # It may also have looked_at_all(state, marks, values, missing), which is called where
    # several variables are looked at, in place of looked_at: marks are names, lines, and whether
    # each was assigned; a value that is `missing` is to be passed over, and so are other names.

    # And deleted(state, names), which is called before `del` takes variables away.

    def returned(self, state: object, value: object, line: int) -> None:
        """The call has returned this, if not by an exception."""
