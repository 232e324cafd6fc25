"""What the variables of the program hold, and which stores put it there.

They are looked at when a call site is first seen with a new signature: the caller's, and those of
the functions around it. Of a function that runs once during a module call it is remembered what
they were, so that the next look tells what has been stored in between.
"""

from __future__ import annotations

from dataclasses import is_dataclass
from itertools import islice
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from torch import Tensor
from torch.nn import Module
from torch.nn.modules import module as torch_modules

from shapetrace.recorder.assignments import BEFORE, Reached, is_module
from shapetrace.recorder.callsite import Activation, Site
from shapetrace.recorder.describe import MOST_DEPTH, MOST_ITEMS, describe_value, holds_tensor
from shapetrace.recorder.flow import Ways
from shapetrace.recorder.frames import OPTIMIZED, forget_locals, frame_at, read_locals
from shapetrace.recorder.once import forward_code, runs_once
from shapetrace.recorder.targets import Path

if TYPE_CHECKING:
    from shapetrace.recorder.call_finder import LiveCall
    from shapetrace.recorder.thread_state import ThreadState

_UNKNOWN: Final = object()

_MOST_NAMES: Final = 400
"""Variables of a module that are looked at; generated code may have any number."""

Names = dict[int, str]
"""Names by the identity of the tensor."""


class Look(NamedTuple):
    """What a function's variables were the last time."""

    offset: int
    identities: dict[str, int]
    never: Ways
    """The ways through the function that this run of it does not take."""


Looks = dict[Activation, Look | None]
"""The last look at each function that runs once during a module call; None for the others."""


def note_locals(
    state: ThreadState, frame: FrameType, site: Site, is_calling: bool = False
) -> Names:
    """Note the tensors that a function's locals hold, at the stores that put them there.

    And those that a module's variables hold; a class's body is passed over. Where the function
    ``is_calling``, something of the program's own runs that it has called.
    """
    if not frame.f_code.co_flags & OPTIMIZED and not is_module(frame.f_code):
        return {}
    values = read_locals(frame)
    try:
        return _look_at(state, frame, site, values, is_calling)
    finally:
        forget_locals(frame, values)


def note_callers(state: ThreadState, frame: FrameType, site: Site) -> None:
    """Note the locals of the functions around a call, up to the module call that it is part of.

    Each of them is at a call whose result it has not stored yet.
    """
    boundary = state.stack[-1].variant.site if state.stack else None
    caller = site.activation.caller
    while caller is not None and caller is not boundary:
        outer = frame_at(caller, frame)
        if outer is None:
            return
        if not caller.activation.in_torch:
            note_locals(state, outer, caller, is_calling=True)
        frame, caller = outer, caller.activation.caller


def note_returned(state: ThreadState, call: LiveCall, result: Any) -> None:
    """Note what a module call's result tells of the variables that its ``forward`` returned."""
    activation = None if call.module is None else _forward_of(call.module, call.variant.callees)
    while activation is not None:
        if not activation.in_torch:
            _note_result(state, call, activation, result)
        activation = _returned_by(state, call, activation)


def _note_result(state: ThreadState, call: LiveCall, activation: Activation, result: Any) -> None:
    assignments = state.recorder.assignments_of(activation.code)
    last = (call.looks or {}).get(activation)
    since, never = (None, frozenset()) if last is None else (last.offset, last.never)
    ending = assignments.returned(since, never)
    if ending is None:
        return
    stores = assignments.reached(ending.offset, since, never).stores
    for name, path in ending.variables:
        value = _item(result, path)
        found = stores.get(name, [])
        if len(found) == 1 and found[0] != BEFORE:
            _note(state, activation, name, found[0], value)


def _forward_of(module: Module, callees: dict[int, Activation] | None) -> Activation | None:
    """The activation of the ``forward`` that returned what a module call returns."""
    if not callees or module._forward_hooks or torch_modules._global_forward_hooks:
        return None  # what hooks return is returned instead
    code = forward_code(module)
    return None if code is None else callees.get(id(code))


def _returned_by(state: ThreadState, call: LiveCall, activation: Activation) -> Activation | None:
    """The function that was called once, and whose result a function returned as it was."""
    assignments = state.recorder.assignments_of(activation.code)
    for site in activation.sites.values():
        if site.callees and assignments.is_returned(site.offset):
            for callee in site.callees.values():
                if call.looks and call.looks.get(callee) is not None:
                    return callee
    return None


def _look_at(
    state: ThreadState, frame: FrameType, site: Site, values: Any, is_calling: bool
) -> Names:
    activation = site.activation
    assignments = state.recorder.assignments_of(frame.f_code)
    offset = assignments.align(site.offset)
    is_of_module = is_module(frame.f_code)
    if is_of_module and len(assignments.names) > _MOST_NAMES:
        return {}
    bound = {name: values[name] for name in assignments.names if name in values}
    # Not isinstance: an object of the program's may answer for its class.
    tensors = {name: value for name, value in bound.items() if issubclass(type(value), Tensor)}
    if bound and assignments.is_settled(offset):
        never = assignments.never_taken(bound)
        look = Look(offset, {name: id(value) for name, value in bound.items()}, never)
        last = _exchange(state, activation, frame, look)
        reached = assignments.reached(offset, None if last is None else last.offset, never)
        mutable = [name for name, value in bound.items() if issubclass(type(value), dict | list)]
        if mutable:
            since = None if last is None else last.offset
            is_open = assignments.open_at(offset, since, never, is_calling)
            mutable = [name for name in mutable if name not in is_open]
        for name, value in bound.items():
            if name not in tensors and not issubclass(type(value), tuple) and name not in mutable:
                continue
            store = _store_of(name, bound, reached, last)
            if store is None:
                continue
            if is_of_module:
                known = (store, id(value))
                if state.seen.get((activation, name)) == known:
                    continue
                state.seen[activation, name] = known
            _note(state, activation, name, store, value, is_intact=name in mutable)
        for copy in reached.made:
            value = _item(bound.get(copy.source, _UNKNOWN), copy.path)
            _note(state, activation, copy.name, copy.offset, value)
    return {id(value): name for name, value in reversed(tensors.items())}


def _exchange(
    state: ThreadState, activation: Activation, frame: FrameType, look: Look
) -> Look | None:
    """Remember a look at a function that runs once, and return the one before it."""
    call = state.stack[-1] if state.stack else None
    if call is None:
        return None
    if call.looks is None:
        call.looks = {}
    if activation not in call.looks:
        call.looks[activation] = look if runs_once(state, call, activation, frame) else None
        return None
    last = call.looks[activation]
    if last is not None:
        call.looks[activation] = look
    return last


def _store_of(name: str, bound: dict[str, Any], reached: Reached, last: Look | None) -> int | None:
    """The store, or BEFORE for the entry, that gave a variable what it holds."""
    value = bound[name]
    stores = []
    for store in reached.stores.get(name, ()):
        if store == BEFORE and last is not None and last.identities.get(name) != id(value):
            continue
        copy = reached.intact.get((name, store))
        if copy is not None:
            copied = _item(bound.get(copy.source, _UNKNOWN), copy.path)
            if copied is not _UNKNOWN and copied is not value:
                continue
        stores.append(store)
    if len(stores) != 1 or (stores[0] == BEFORE and last is not None):
        return None
    return stores[0]


def _note(
    state: ThreadState,
    activation: Activation,
    name: str,
    store: int,
    value: Any,
    is_intact: bool = False,
) -> None:
    kind = type(value)
    if is_intact and issubclass(kind, dict | list):
        held = dict.values(value) if issubclass(kind, dict) else list.__iter__(value)
        if not all(_is_as_stored(state, each) for each in islice(held, MOST_ITEMS)):
            return
    elif not issubclass(kind, Tensor | tuple) or not _is_as_stored(state, value):
        return
    raw = describe_value(value)
    if holds_tensor(raw):
        state.recorder.note_variable(activation, name, None if store == BEFORE else store, raw)


def _item(value: Any, path: Path) -> Any:
    """An item of a tuple, as unpacking or an index would give it; what may change has none."""
    for number, among in path:
        kind = type(value)
        if (
            not issubclass(kind, tuple)
            or kind.__getitem__ is not tuple.__getitem__
            or kind.__iter__ is not tuple.__iter__
        ):
            return _UNKNOWN
        length = tuple.__len__(value)
        if among not in (None, length) or not -length <= number < length:
            return _UNKNOWN
        value = tuple.__getitem__(value, number)
    return value


def _is_as_stored(state: ThreadState, value: Any, depth: int = 0) -> bool:
    """Whether a value looks as it did when it was stored, as lists and reshaped tensors may not."""
    kind = type(value)
    if issubclass(kind, tuple):
        items = islice(tuple.__iter__(value), MOST_ITEMS)
        return depth < MOST_DEPTH and all(_is_as_stored(state, each, depth + 1) for each in items)
    if issubclass(kind, list | dict) or is_dataclass(kind):
        return False
    return id(value) not in state.reshaped
