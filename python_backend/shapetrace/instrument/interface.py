"""What a listener of a followed function asks for, and what is called for it."""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Protocol, TypeAlias


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


Entered: TypeAlias = Callable[[Call], object | None]
"""A call has begun. What is returned is the call's state; None: nothing more of it is heard."""
EnteredBy: TypeAlias = Callable[[Any], object | None]
"""A call has begun, with this first parameter."""
EnteredWith: TypeAlias = Callable[[types.FrameType, tuple[Any, ...]], object | None]
"""A call has begun in this frame, with these arguments in the order in which they are written."""
LookedAt: TypeAlias = Callable[[Any, str, Any, int, bool], None]
"""``(state, name, value, line, assigned)``: a variable was assigned on this line, or may have been
changed in place by it."""
LookedAtAll: TypeAlias = Callable[
    [Any, tuple[tuple[str, int, bool], ...], tuple[Any, ...], object], None
]
"""``(state, marks, values, missing)``: several variables. A mark is a name, a line, and whether it
was assigned. A value that is ``missing`` is to be passed over, and so are other names."""
Deleted: TypeAlias = Callable[[Any, frozenset[str]], None]
"""``(state, names)``: ``del`` is about to take these variables away."""
Returned: TypeAlias = Callable[[Any, Any, int], None]
"""``(state, value, line)``: the call has returned this, if not by an exception."""
SteppedAside: TypeAlias = Callable[[], None]
"""Nothing is heard while something compiled runs. Called once."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """What a listener has called while a function runs; it hears nothing of what it leaves out."""

    looked_at: LookedAt
    returned: Returned | None = None
    entered: Entered | None = None
    entered_by: EnteredBy | None = None
    """In place of ``entered``, for who needs nothing but the first parameter."""
    entered_with: EnteredWith | None = None
    """In place of both, for who is told of all parameters at once: they are not looked at again."""
    looked_at_all: LookedAtAll | None = None
    """In place of ``looked_at``, where several variables are looked at."""
    deleted: Deleted | None = None
    stepped_aside: SteppedAside | None = None

    def each(self, wrapped: Callable[[Any], Any] | None) -> Hooks:
        """All of them, wrapped if there is something to wrap them in."""
        if wrapped is None:
            return self
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return Hooks(**{name: hook and wrapped(hook) for name, hook in given.items()})


class Listener(Protocol):
    """Hears of calls. What it raises ends the following and is kept there."""

    def hooks(self) -> Hooks:
        """What is called; asked for once for each function that it follows."""
