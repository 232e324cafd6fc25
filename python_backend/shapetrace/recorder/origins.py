"""Which stores may have given a running function's variables what they hold, by its bytecode.

Standard library only. Of variables that somebody has set at a stop, of modules that open their
namespace, and of what a former run of a module has left, nothing is said.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType, FrameType
from typing import Final

from shapetrace.recorder.assignments import BEFORE, Assignments, Reached
from shapetrace.recorder.flow import Ways
from shapetrace.recorder.order import Order
from shapetrace.recorder.steps import is_module

_MOST_CHANGED: Final = 1000
_NAMESPACES: Final = frozenset({"globals", "locals", "exec", "f_globals", "f_locals"})
"""What a module uses that may store to its variables by other ways than its own statements."""
_MOST_TAKEN: Final = 12
_MOST_STEPS: Final = 5_000
"""Instructions of a function of which it is looked at where it came by."""
_UNBINDING: Final = frozenset(
    {"DELETE_FAST", "DELETE_NAME", "DELETE_GLOBAL", "DELETE_DEREF", "LOAD_FAST_AND_CLEAR"}
)

_changed: dict[int, None] = {}
"""Frames and modules whose variables somebody has set at a stop. One that is gone may have the
identity of one that is not: of that we say less than we know, and nothing wrong."""


def changed_by_hand(frame: FrameType, *, is_global: bool = False) -> None:
    """Somebody may have set variables of a function that runs: its own stores no longer tell.

    Also those of the module that it is in, where these are global.
    """
    for changed in (frame, frame.f_globals) if is_global else (frame,):
        if len(_changed) >= _MOST_CHANGED:
            del _changed[next(iter(_changed))]
        _changed[id(changed)] = None


def is_of_module(frame: FrameType) -> bool:
    """Whether a frame is that of a module or script, whose variables are all global."""
    if not is_module(frame.f_code):
        return False
    values = frame.f_locals
    if values is frame.f_globals:
        return True
    # In a comprehension they are another object each time they are read: on Python 3.12 a copy with
    # its variables, and since then these alone.
    is_other = type(values) is not dict or "__builtins__" in values
    return is_other and values is not frame.f_locals


def may_know(frame: FrameType) -> bool:
    """Whether a running function's variables are bound by its own statements alone."""
    if id(frame) in _changed:
        return False
    if is_module(frame.f_code):
        return not (id(frame.f_globals) in _changed or _opens_namespace(frame.f_code))
    return True


def reached_at(
    frame: FrameType, assignments: Assignments, never: Ways = frozenset()
) -> Reached | None:
    """The stores that may have given each variable its value where a function stands."""
    offset = assignments.align(max(frame.f_lasti, 0))
    if not assignments.is_settled(offset) or not may_know(frame):
        return None
    since = None
    if is_module(frame.f_code) and not _began_empty(frame):
        since = assignments.align(0)  # Each variable may have had a value there.
    return assignments.reached(offset, since, never)


def stores_of(frame: FrameType, assignments: Assignments, name: str) -> list[int]:
    """The stores one of which gave a variable its value; none where a caller passed it."""
    if name not in assignments.names:
        return []
    reached = reached_at(frame, assignments)
    stores = [] if reached is None else reached.stores_of(name)
    return [] if BEFORE in stores else stores


class WaysHere:
    """The ways that lead to where a function stands, as far as it is known where it came by."""

    def __init__(
        self,
        assignments: Assignments,
        order: Order,
        here: int,
        never: Ways,
        reached: Reached,
        taken: frozenset[int],
    ) -> None:
        self._assignments = assignments
        self._order = order
        self._here = here
        self._never = never
        self._reached = reached
        is_sure = not order.may_swallow and len(order) <= _MOST_STEPS
        places = (assignments.align(place) for place in taken if is_sure)
        settled = (place for place in places if assignments.is_settled(place) and place != here)
        self._taken = sorted(settled, reverse=True)[:_MOST_TAKEN]

    def of(self, name: str, stores: list[int]) -> tuple[list[int], bool]:
        """Which stores may have given a variable its value, and whether that was in this turn.

        A turn is an iteration of the innermost loop around the store, or the call.
        """
        if len(stores) == 1 and self._is_fresh(name, stores):
            return stores, True
        for place in self._taken:
            since = self._since(place, name)
            found = [each for each in since if each != BEFORE]
            if BEFORE in since:
                found += self._assignments.reached(place, None, self._never).stores_of(name)
            remaining = [store for store in stores if store in found]
            # Should we be wrong about the place, the function does not stand where it does.
            stores = remaining or stores
        return stores, self._is_fresh(name, stores)

    def _is_fresh(self, name: str, stores: list[int]) -> bool:
        return all(self._is_of_turn(name, store) for store in stores)

    def _is_of_turn(self, name: str, store: int) -> bool:
        if store == BEFORE:
            return True
        beginning = self._order.beginning_around(store, self._here)
        if beginning is None:
            return True
        if not self._is_before(self._here, beginning, name):
            return True
        return any(
            BEFORE not in self._since(place, name) or not self._is_before(place, beginning, name)
            for place in self._taken
            if self._order.beginning_around(place, self._here) == beginning
        )

    def _is_before(self, here: int, since: int, name: str) -> bool:
        """Whether a variable may have at an instruction what it had at another one."""
        reached = self._assignments.reached(here, since, self._never)
        return BEFORE in (reached.stores_of(name) or [BEFORE])

    def _since(self, place: int, name: str) -> list[int]:
        return self._assignments.reached(self._here, place, self._never).stores_of(name)


@lru_cache(maxsize=256)
def unbound_by(code: CodeType) -> frozenset[str]:
    """The names that a function, or one that is written in it, may take the value away from."""
    found: set[str] = set()
    pending = [code]
    for each in pending:
        found.update(
            step.argval for step in dis.get_instructions(each) if step.opname in _UNBINDING
        )
        pending.extend(part for part in each.co_consts if isinstance(part, CodeType))
    return frozenset(found)


def _began_empty(frame: FrameType) -> bool:
    """Whether a script or module runs for the first time, and not in what a former run has left."""
    known = frame.f_globals
    if known.get("__name__") == "__main__":
        return known.get("__file__") == frame.f_code.co_filename
    return getattr(known.get("__spec__"), "_initializing", False) is True


@lru_cache(maxsize=64)
def _opens_namespace(code: CodeType) -> bool:
    """Whether a module may store to its variables other than by name, in any function of its."""
    pending = [code]
    while pending:
        current = pending.pop()
        if not _NAMESPACES.isdisjoint(current.co_names) or _asks_for_own_variables(current):
            return True
        pending.extend(part for part in current.co_consts if isinstance(part, CodeType))
    return False


def _asks_for_own_variables(code: CodeType) -> bool:
    """Whether code calls ``vars()``, of nothing else."""
    if "vars" not in code.co_names:
        return False
    loaded = None
    for step in _steps(code):
        if step.opname.startswith("CALL") and loaded == "vars" and step.arg == 0:
            return True
        loaded = step.argval
    return False


def _steps(code: CodeType) -> Iterator[dis.Instruction]:
    """The instructions that do something with values."""
    passed_over = ("CACHE", "PRECALL", "PUSH_NULL", "EXTENDED_ARG", "KW_NAMES")
    return (each for each in dis.get_instructions(code) if each.opname not in passed_over)
