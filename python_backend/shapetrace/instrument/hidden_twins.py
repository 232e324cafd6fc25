"""Classes with code of their own for what a debugger is kept out of.

A debugger is kept out of code objects. Where the program's own listeners run it must not be: their
callbacks are stepped into, and a step out of one ends where the hook returns.
"""

from __future__ import annotations

from functools import cache
from types import FunctionType
from typing import TypeVar, cast

from shapetrace._exception_table import tell_of_code

Kind = TypeVar("Kind", bound=type)


def hidden_twin(kind: Kind) -> Kind:
    """A subclass that does the same, by methods with code of their own."""
    return cast("Kind", _hidden_twin(kind))


@cache
def _hidden_twin(kind: type) -> type:
    own = [each for each in kind.__mro__ if each.__module__.startswith("shapetrace.")]
    methods = {
        name: _copied(each)
        for holder in reversed(own)
        for name, each in vars(holder).items()
        if isinstance(each, FunctionType) and name not in ("__new__", "__init__")
    }
    return type(f"Hidden{kind.__name__}", (kind,), {"__slots__": (), **methods})


def _copied(function: FunctionType) -> FunctionType:
    code = function.__code__
    # Codes of one name, line and content are equal to each other, and so to a debugger.
    twin = code.replace(co_name=f"hidden {code.co_name}")
    tell_of_code(twin)
    copy = FunctionType(
        twin, function.__globals__, code.co_name, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy
