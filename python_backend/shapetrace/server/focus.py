"""The stack frame that is looked at, as the editor tells of it.

``extension/src/protocol.ts`` is the other side, as it is of ``protocol``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shapetrace.events.checks import Refused
from shapetrace.events.model import Value
from shapetrace.events.rows import read_value
from shapetrace.server.held import Held, Locals
from shapetrace.server.messages.codec import (
    list_in,
    number_in,
    numbers_in,
    object_of,
    optional_number_in,
    optional_text_in,
    text_in,
)
from shapetrace.server.scope import Scope, Stand


@dataclass(frozen=True, slots=True)
class FocusVariable:
    """What a variable of a function holds that stands still."""

    name: str
    value: Any
    """As ``events.rows`` has values."""
    stores: tuple[tuple[int, ...], ...]
    """Where it may have been stored, as ``server.held`` has it."""
    is_fresh: bool


@dataclass(frozen=True, slots=True)
class FocusOutside:
    """How far a function has come that waits for the one that is looked at."""

    reached: tuple[int, ...]
    file: str
    function: str
    line: int
    variables: tuple[FocusVariable, ...] = ()
    unbound: tuple[str, ...] | None = None
    """Names that have never been stored to; None where nothing is known of the variables."""


@dataclass(frozen=True, slots=True)
class Focus:
    """The stack frame that is looked at; without a process there is none."""

    session: str
    process: int | None
    call: int | None
    reached: tuple[int, ...] | None
    file: str | None
    function: str | None
    line: int | None = None
    variables: tuple[FocusVariable, ...] = ()
    unbound: tuple[str, ...] | None = None
    outer: tuple[FocusOutside, ...] = ()
    """The functions that wait for it, from the inside out."""


def read_focus(params: object) -> Focus:
    """The parameters of ``shapetrace/focus``."""
    given = object_of(params)
    return Focus(
        session=text_in(given, "session"),
        process=optional_number_in(given, "process"),
        call=optional_number_in(given, "call"),
        reached=None if given.get("reached") is None else numbers_in(given, "reached"),
        file=optional_text_in(given, "file"),
        function=optional_text_in(given, "function"),
        line=optional_number_in(given, "line"),
        variables=tuple(map(_focus_variable, list_in(given, "variables"))),
        unbound=_unbound(given),
        outer=tuple(map(_focus_outside, list_in(given, "outer"))),
    )


def _focus_outside(params: object) -> FocusOutside:
    given = object_of(params)
    return FocusOutside(
        reached=numbers_in(given, "reached"),
        file=text_in(given, "file"),
        function=text_in(given, "function"),
        line=number_in(given, "line"),
        variables=tuple(map(_focus_variable, list_in(given, "variables"))),
        unbound=_unbound(given),
    )


def _focus_variable(params: object) -> FocusVariable:
    given = object_of(params)
    stores = (numbers_in({"stores": place}, "stores") for place in list_in(given, "stores"))
    return FocusVariable(
        name=text_in(given, "name"),
        value=given.get("value"),
        stores=tuple(stores),
        is_fresh=given.get("isFresh") is True,
    )


def _unbound(given: Mapping[str, Any]) -> tuple[str, ...] | None:
    if given.get("unbound") is None:
        return None
    return tuple(each for each in list_in(given, "unbound") if isinstance(each, str))


def scope_of(given: Focus, process: int) -> Scope:
    """What counts for a stack frame of a process, by its number in the store."""
    return Scope(
        process=process,
        call=given.call,
        reached=None if given.reached is None else frozenset(given.reached),
        function=given.function,
        file=given.file,
        line=given.line,
        outer=tuple(
            Stand(frozenset(it.reached), it.function, it.file, it.line, _locals(it))
            for it in given.outer
        ),
        locals=_locals(given),
    )


def _locals(given: Focus | FocusOutside) -> Locals:
    """What is told of a function's variables."""
    variables = (
        Held(each.name, value, each.stores, each.is_fresh)
        for each in given.variables
        if each.stores and (value := _value(each.value)) is not None
    )
    unbound = None if given.unbound is None else frozenset(given.unbound)
    return Locals(tuple(variables), unbound)


def _value(row: Any) -> Value | None:
    """A value, if it is one."""
    try:
        return read_value(row)
    except Refused:
        return None
