"""The interface of listeners: what they ask for, and how they are called."""

from __future__ import annotations

import types
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

Request = TypeVar("Request")


@dataclass(frozen=True, slots=True)
class Interest:
    """What to report of a function."""

    names: frozenset[str] | None
    """Its variables, as the source calls them. None: all of them."""
    returns: bool
    nested: tuple[str, ...] = ()
    """The way from the function to one that is defined in it, by names of functions and classes."""
    merges: bool = True
    """Whether a comprehension's variable counts as the function's variable of that name."""


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
"""A call has begun. The result is the call's state; with None, it is not followed further."""
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
was assigned. Skip values that are ``missing``, and names that were not asked for."""
Deleted: TypeAlias = Callable[[Any, frozenset[str]], None]
"""``(state, names)``: ``del`` is about to take these variables away."""
Returned: TypeAlias = Callable[[Any, Any, int], None]
"""``(state, value, line)``: the call has returned this, if not by an exception."""
SteppedAside: TypeAlias = Callable[[], None]
"""Nothing is reported inside compiled regions. Called once."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """The functions of a listener to call; those left out are not called."""

    looked_at: LookedAt
    returned: Returned | None = None
    entered: Entered | None = None
    entered_by: EnteredBy | None = None
    """In place of ``entered``, for listeners that need only the first parameter."""
    entered_with: EnteredWith | None = None
    """In place of both, for listeners that take all parameters at once."""
    looked_at_all: LookedAtAll | None = None
    """In place of ``looked_at``, for several variables at once."""
    deleted: Deleted | None = None
    stepped_aside: SteppedAside | None = None
    is_hidden: bool = False
    """Whether a debugger is kept out of them, and of the code that calls them."""

    def each(self, wrapped: Callable[[Any], Any] | None) -> Hooks:
        """The hooks, wrapped and hidden if a wrapper that keeps debuggers out is given."""
        if wrapped is None:
            return self
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        del given["is_hidden"]
        return Hooks(
            **{name: hook and wrapped(hook) for name, hook in given.items()}, is_hidden=True
        )


class Listener(Protocol):
    """Is called for each call. Its exceptions end the following, which keeps them."""

    def hooks(self) -> Hooks:
        """The functions to call; asked for once for each followed function."""


def requests_by_variable(
    requests: Iterable[tuple[str, Hashable, Request, bool]],
) -> tuple[dict[str, list[tuple[Any, Request]]], dict[str, Request]]:
    """The requests of each variable with their keys, and those for nothing but its whole value.

    Given are variable, key, request, and whether it is for the whole value only. What such a
    request last saw is found by the variable's name: its key is the name, if it is the only one.
    """
    of: dict[str, list[tuple[Any, Request]]] = {}
    whole: dict[str, Request] = {}
    for name, key, request, is_whole in requests:
        of.setdefault(name, []).append((key, request))
        if is_whole:
            whole[name] = request
    for name, pairs in of.items():
        if len(pairs) > 1:
            whole.pop(name, None)
        elif name in whole:
            of[name] = [(name, whole[name])]
    return of, whole
