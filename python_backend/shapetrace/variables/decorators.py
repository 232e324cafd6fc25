"""``@auto_diff`` and ``@var_tracker``: following a function from where it is defined."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any, TypeVar, overload

from shapetrace._errors import CannotFollowError
from shapetrace.variables.followed_names import parse_name
from shapetrace.variables.logs import TO_LOGGER
from shapetrace.variables.outlets import TO_STDOUT, Outlet, Printing
from shapetrace.variables.tracking import Request, track
from shapetrace.variables.variable_listener import Followed

Function = TypeVar("Function")


@overload
def auto_diff(function: Function, /) -> Function: ...
@overload
def auto_diff(
    *, stats: bool = False, file: Any = None, handler: Outlet | None = None
) -> Callable[[Function], Function]: ...
def auto_diff(
    function: Any = None,
    /,
    *,
    stats: bool = False,
    file: Any = None,
    handler: Outlet | None = None,
) -> Any:
    """Print each call of a function: inputs, output and duration.

    ``stats`` adds the smallest, the largest and the mean number. With ``file``, the text goes
    there. A ``handler`` is called with each event (``shapetrace.events.followed``); then nothing is
    printed, unless there is a ``file`` too.
    """
    request = Request((), _outlets(file, handler), stats)
    if function is None:
        return lambda function: _decorated(function, request)
    return _decorated(function, request)


def var_tracker(
    *names: str,
    stats: bool = False,
    tolerance: float | None = None,
    file: Any = None,
    handler: Outlet | None = None,
) -> Callable[[Function], Function]:
    """Print each change of some variables of a function, with the line that made it.

    Names are written as in the function: ``"video"``, ``"sample['video']"``, ``"self.cache.k"``.
    With ``tolerance``, contents are compared, and a change within it is marked as such. The rest is
    as for ``auto_diff``, which this includes.
    """
    if tolerance is not None and not tolerance >= 0:
        raise ValueError(f"tolerance is to be a number from 0 on, not {tolerance!r}")
    for name in names:
        if callable(name):
            raise TypeError('var_tracker needs names: write @var_tracker("name") above it')
    everything = tuple(Followed(parse_name(name), stats, tolerance) for name in names)
    request = Request(everything, _outlets(file, handler), stats)
    return lambda function: _decorated(function, request)


def _outlets(file: Any, handler: Outlet | None) -> tuple[Outlet, ...]:
    if handler is not None and not callable(handler):
        raise TypeError(f"handler is to be a function, not {type(handler).__name__}")
    outlets: list[Outlet] = []
    if file is not None or handler is None:
        outlets = [TO_STDOUT if file is None else Printing(file), TO_LOGGER]
    return (*outlets, handler) if handler is not None else tuple(outlets)


def _decorated(decorated: Function, request: Request) -> Function:
    """The decorated object itself, whose function is followed from now on."""
    for function in functions_of(decorated):
        track(function, request)
    return decorated


def functions_of(decorated: Any) -> list[types.FunctionType]:
    """The functions below a decorator: methods, those of properties, and wrapped ones."""
    if isinstance(decorated, property):
        accessors = (decorated.fget, decorated.fset, decorated.fdel)
        return [found for each in accessors if each is not None for found in functions_of(each)]
    if isinstance(decorated, staticmethod | classmethod | types.MethodType):
        return functions_of(decorated.__func__)
    if isinstance(decorated, functools.cached_property):
        return functions_of(decorated.func)
    if isinstance(decorated, type):
        raise CannotFollowError(
            f"{decorated.__qualname__} is a class: decorate the methods that are to be followed"
        )
    inner = decorated
    seen = {id(inner)}
    while (wrapped := getattr(inner, "__wrapped__", None)) is not None and id(wrapped) not in seen:
        inner = wrapped
        seen.add(id(inner))
    if isinstance(inner, staticmethod | classmethod | types.MethodType | property):
        return functions_of(inner)
    if isinstance(inner, types.FunctionType):
        return [inner]
    raise CannotFollowError(f"{_shown(inner)}: only what `def` defines can be followed")


def _shown(value: Any) -> str:
    name = getattr(value, "__name__", None)
    kind = type(value).__name__
    if isinstance(value, types.BuiltinFunctionType | types.BuiltinMethodType):
        return f"{name} is built in"
    if isinstance(value, functools.partial):
        return "this is a functools.partial"
    return f"this is a value of class {kind}"
