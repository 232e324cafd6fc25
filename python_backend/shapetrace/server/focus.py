"""From the stack frame that is selected in the debugger to the calls that count for it."""

from __future__ import annotations

from typing import Any

from shapetrace.events.checks import Refused
from shapetrace.events.model import Value
from shapetrace.events.value_rows import read_value
from shapetrace.server.held import Held, Locals
from shapetrace.server.messages.focus import Focus, FocusOutside
from shapetrace.server.scope import Scope, Stand


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
