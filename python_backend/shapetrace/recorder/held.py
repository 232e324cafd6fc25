"""What the variables of a function that stands still hold, and which stores put it there.

While the program stands, its own variables are the truth: what was seen of them while it ran may be
of an earlier call. Told is what holds tensors, looks as it did when it was stored, and can only
have come from known stores; and which names hold nothing at all, and so were not stored to.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import Tensor

from shapetrace._exception_table import leaving_surely
from shapetrace.events.stop import NOTHING_KNOWN, Locals, LocalVariable, Place
from shapetrace.events.value_rows import read_value
from shapetrace.recorder.assignments import BEFORE, Assignments
from shapetrace.recorder.describe import describe_value, holds_tensor
from shapetrace.recorder.frames import OPTIMIZED, forget_locals, is_readable, read_locals
from shapetrace.recorder.origins import WaysHere, is_of_module, may_know, reached_at, unbound_by
from shapetrace.recorder.plain_rows import value_row
from shapetrace.recorder.positions import Positions
from shapetrace.recorder.steps import is_module, name_of

if TYPE_CHECKING:
    from shapetrace.recorder.session import Recorder

MOST_NAMES: Final = 400
"""Names of one function that are told of; generated code may have any number."""
_MOST_STORES: Final = 8
_MOST_INSIDE: Final = 500
"""Values inside of one variable that are looked at."""
_PLAIN: Final = frozenset({int, float, complex, bool, str, bytes, type(None)})
_CONTAINERS: Final = (tuple, list, dict)


def held_by(
    recorder: Recorder, frames: list[FrameType], is_waiting: bool, taken: frozenset[int]
) -> Locals:
    """What the variables of a function hold, whose frame is the last, and of its expressions.

    A function that ``is_waiting`` has called one that still runs. In its present turn the function
    has come by the places in ``taken``.
    """
    held: list[LocalVariable] = []
    for frame in frames:
        is_calling = is_waiting or frame is not frames[0]
        its_taken = taken if frame is frames[-1] else frozenset()
        known = _held_by_frame(recorder, frame, is_calling, its_taken)
        if frame is frames[-1]:
            return Locals((*held, *known.variables), known.unbound)
        # What is passed to an expression's own function is no parameter of the one around it.
        held += (each for each in known.variables if all(len(place) > 1 for place in each.stores))
    return NOTHING_KNOWN


@leaving_surely
def _held_by_frame(
    recorder: Recorder, frame: FrameType, is_waiting: bool, taken: frozenset[int]
) -> Locals:
    code = frame.f_code
    if not is_readable(frame) or not (code.co_flags & OPTIMIZED or is_of_module(frame)):
        return NOTHING_KNOWN
    assignments = recorder.assignments_of(code)
    if len(assignments.names) > MOST_NAMES and is_module(code):
        return NOTHING_KNOWN
    values = read_locals(frame)
    try:
        visible = assignments.visible(values, max(frame.f_lasti, 0))
        # Neither the program's modes nor its classes are to be asked.
        with torch._C.DisableTorchFunction():
            variables = tuple(_variables(recorder, frame, assignments, visible, is_waiting, taken))
        del visible
        names = assignments.names if is_module(code) else (*code.co_varnames, *code.co_cellvars)
        unbound: frozenset[str] = frozenset()
        if may_know(frame):
            may_be_deleted = unbound_by(code)
            never = (each for each in names if each not in values)
            unbound = frozenset(each for each in never if each not in may_be_deleted)
        return Locals(variables, unbound)
    finally:
        forget_locals(frame, values)


def _variables(
    recorder: Recorder,
    frame: FrameType,
    assignments: Assignments,
    values: Any,
    is_waiting: bool,
    taken: frozenset[int],
) -> Iterator[LocalVariable]:
    bound = {name: values[name] for name in assignments.names if name in values}
    if not any(issubclass(type(value), (Tensor, *_CONTAINERS)) for value in bound.values()):
        return
    never = assignments.never_taken(bound)
    reached = reached_at(frame, assignments, never) if bound else None
    if reached is None:
        return
    offset = assignments.align(max(frame.f_lasti, 0))
    mutable = [name for name, value in bound.items() if issubclass(type(value), list | dict)]
    if mutable:
        is_open = assignments.open_at(mutable, offset, None, never, is_waiting)
        mutable = [name for name in mutable if name not in is_open]
    order = recorder.turns.order_of(frame.f_code)
    ways = WaysHere(assignments, order, offset, never, reached, taken)
    positions = Positions()
    told = 0
    for name, value in bound.items():
        if told >= MOST_NAMES or not _is_as_stored(recorder, value, name in mutable):
            continue
        stores = reached.stores_of(name)
        raw = describe_value(value)
        if not stores or not holds_tensor(raw):
            continue
        stores, is_fresh = ways.of(name, stores)
        # What is written once may be there twice, as the end of a ``try`` is.
        its_name = name_of(name)
        places = dict.fromkeys(_place(positions, frame, its_name, store) for store in stores)
        if None in places or (BEFORE in stores and is_module(frame.f_code)):
            continue
        if not 0 < len(places) <= _MOST_STORES:
            continue
        told += 1
        its_places = tuple(filter(None, places))
        value = read_value(value_row(raw))
        yield LocalVariable(its_name, value, its_places, is_fresh and len(places) == 1)


def _place(positions: Positions, frame: FrameType, name: str, store: int) -> Place | None:
    """Where a store stands; where the function begins for what it was called with."""
    if store == BEFORE:
        return (frame.f_code.co_firstlineno,)
    line, end_line, column, end_column = positions.of_store(frame.f_code, store, name)
    if end_line is None or column is None or end_column is None:
        return None
    return (line, column, end_line, end_column)


def _is_as_stored(recorder: Recorder, value: Any, is_intact: bool) -> bool:
    """Whether a value looks as it did when it was stored, and is not too much to look at."""
    kind = type(value)
    if issubclass(kind, Tensor):
        return not _is_reshaped(recorder, value)
    if not issubclass(kind, _CONTAINERS) or (issubclass(kind, list | dict) and not is_intact):
        return False
    seen = 0
    pending = [value]
    while pending:
        current = pending.pop()
        kind = type(current)
        if issubclass(kind, tuple):
            inside: Any = tuple.__iter__(current)
            size = tuple.__len__(current)
        elif current is not value and issubclass(kind, list | dict):
            return False  # through another name it may have been changed
        elif issubclass(kind, list):
            inside, size = list.__iter__(current), list.__len__(current)
        elif issubclass(kind, dict):
            inside, size = dict.values(current), dict.__len__(current)
        elif issubclass(kind, Tensor):
            if _is_reshaped(recorder, current):
                return False
            continue
        elif kind in _PLAIN:
            continue
        elif hasattr(kind, "__dataclass_fields__"):
            return False
        else:
            continue
        seen += size
        if seen > _MOST_INSIDE:
            return False
        pending.extend(inside)
    return True


def _is_reshaped(recorder: Recorder, tensor: Any) -> bool:
    return any(id(tensor) in state.reshaped for state in list(recorder.states.values()))
