"""What the variables of the program hold, and which stores put it there.

They are looked at when a call site is first seen with a new signature: the caller's, and those of
the functions around it. Of a function that runs once during a module call it is remembered what
they were, so that the next look tells what has been stored in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import is_dataclass
from itertools import compress, islice
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from torch import Tensor
from torch.nn import Module
from torch.nn.modules import module as torch_modules

from shapetrace.recorder.assignments import BEFORE, Assignments, Reached
from shapetrace.recorder.callsite import Activation, Site
from shapetrace.recorder.describe import MOST_DEPTH, MOST_ITEMS, describe_value, holds_tensor
from shapetrace.recorder.flow import Ways
from shapetrace.recorder.frames import forget_locals, frame_at, read_locals
from shapetrace.recorder.once import forward_code, runs_once
from shapetrace.recorder.steps import is_comprehension, is_module, name_of
from shapetrace.recorder.targets import Path
from shapetrace.recorder.told import Told

if TYPE_CHECKING:
    from shapetrace.recorder.call_finder import LiveCall
    from shapetrace.recorder.session import Recorder
    from shapetrace.recorder.thread_state import ThreadState

_UNKNOWN: Final = object()
_LOOKED_AT: Final = (Tensor, tuple, dict, list)

_MOST_NAMES: Final = 400
"""Variables of a module that are looked at; generated code may have any number."""

_FEW_NAMES: Final = 32
"""Variables of a function that are sooner looked at than told apart."""

Names = dict[int, str]
"""Names by the identity of the tensor."""


class Look(NamedTuple):
    """What a function's variables were the last time."""

    offset: int
    bound: tuple[str, ...]
    identities: tuple[int, ...]
    """Of what they held, in the order of ``bound``; most of them nobody ever asks for."""
    never: Ways
    """The ways through the function that this run of it does not take."""

    def had(self, name: str, value: Any) -> bool:
        """Whether a variable held a value then."""
        return name in self.bound and self.identities[self.bound.index(name)] == id(value)


Looks = dict[Activation, Look | None]
"""The last look at each function that runs once during a module call; None for the others."""


def note_locals(
    state: ThreadState,
    frame: FrameType,
    site: Site,
    is_calling: bool = False,
    tensors: Sequence[Tensor] = (),
) -> Names:
    """Note the tensors that a function's locals hold, at the stores that put them there.

    And those that a module's variables hold; of a class's body, those of comprehensions. Where the
    function
    ``is_calling``, something of the program's own runs that it has called. What is returned are the
    names of those among ``tensors`` that have one.
    """
    is_of_module = is_module(frame.f_code)
    assignments = state.recorder.assignments_of(frame.f_code)
    if is_of_module and len(assignments.names) > _MOST_NAMES:
        return {}
    values = _values_of(frame, assignments)
    try:
        # There must not be another name for the values here: then they would not be let go of.
        _look_at(state, frame, site, assignments.visible(values, site.offset), is_calling)
        if not tensors:
            return {}
        return _names_of(tensors, assignments, assignments.visible(values, site.offset))
    finally:
        forget_locals(frame, values)


def _values_of(frame: FrameType, assignments: Assignments) -> Any:
    if not is_module(frame.f_code):
        return read_locals(frame)
    values = {**frame.f_globals, **read_locals(frame)}
    # Other threads may store to them meanwhile.
    return {name: values[name] for name in map(name_of, assignments.names) if name in values}


def _names_of(tensors: Sequence[Tensor], assignments: Assignments, values: Any) -> Names:
    """The first variable that holds each of some tensors."""
    wanted = set(map(id, tensors))
    # A function may have thousands of variables: there is no loop of ours over them.
    holding = compress(values, map(wanted.__contains__, map(id, values.values())))
    places = {assignments.place_of(name): name for name in holding}
    places.pop(-1, None)
    found = [places[place] for place in sorted(places, reverse=True)]
    return {id(values[name]): name_of(name) for name in found}


def names_around(frame: FrameType, recorder: Recorder, tensors: Sequence[Tensor]) -> Names:
    """What the function around a comprehension that has a frame of its own calls some tensors."""
    names: Names = {}
    outer: FrameType | None = frame
    while outer is not None and is_comprehension(outer.f_code):
        outer = outer.f_back
        if outer is not None:
            assignments = recorder.assignments_of(outer.f_code)
            values = _values_of(outer, assignments)
            try:
                names = {**_names_of(tensors, assignments, values), **names}
            finally:
                forget_locals(outer, values)
    return names


def note_callers(state: ThreadState, frame: FrameType, site: Site) -> None:
    """Note the locals of the functions around a call, up to the module call that it is part of.

    Each of them is at a call whose result it has not stored yet.
    """
    call = state.stack[-1] if state.stack else None
    boundary = None if call is None else call.variant.site
    looks = None if call is None or state.marks_calls else call.looks
    caller = site.activation.caller
    while caller is not None and caller is not boundary:
        if looks and _stands_still(state, looks.get(caller.activation), caller):
            return
        outer = frame_at(caller, frame)
        if outer is None:
            return
        if not caller.activation.in_torch:
            note_locals(state, outer, caller, is_calling=True)
        frame, caller = outer, caller.activation.caller


def _stands_still(state: ThreadState, last: Look | None, site: Site) -> bool:
    """Whether a function that runs once has been at one call ever since it was looked at.

    Then so have those around it, which were looked at with it.
    """
    if last is None:
        return False
    assignments = state.recorder.assignments_of(site.activation.code)
    return last.offset == assignments.align(site.offset) and not assignments.repeats(site.offset)


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
    reached = assignments.reached(ending.offset, since, never)
    for name, path in ending.variables:
        value = _item(result, path)
        found = reached.stores_of(name)
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
) -> None:
    activation = site.activation
    assignments = state.recorder.assignments_of(frame.f_code)
    offset = assignments.align(site.offset)
    if not assignments.is_settled(offset):
        return
    if not any(map(values.__contains__, assignments.names)):
        return
    never = assignments.never_taken(values)
    last = _exchange(state, activation, frame, offset, values, never)
    since = None if last is None else last.offset
    reached = assignments.reached(offset, since, never)
    is_of_module = is_module(frame.f_code)
    told: Told | None = None
    if last is not None:
        names = reached.stored()
    elif is_of_module or len(assignments.names) <= _FEW_NAMES:
        names = reached.names_but(0)
    else:
        told = state.told.get(activation)
        if told is None:
            told = state.told[activation] = Told()
        names = reached.names_but(told.bits())
    held = [(name, values[name]) for name in names if name in values]
    # Not isinstance: an object of the program's may answer for its class.
    held = [each for each in held if issubclass(type(each[1]), _LOOKED_AT)]
    mutable = [name for name, value in held if issubclass(type(value), dict | list)]
    is_open = frozenset[str]()
    if mutable:
        is_open = assignments.open_at(mutable, offset, since, never, is_calling)
    for name, value in held:
        if name in is_open:
            continue
        store = _store_of(name, values, reached, last)
        if store is None:
            continue
        if is_of_module:
            known = (store, id(value))
            if state.seen.get((activation, name)) == known:
                continue
            state.seen[activation, name] = known
        if told is not None and store != BEFORE:
            teller = state.recorder.worth.teller_of(activation, store)
            if teller is not None:
                told.add(assignments.bit_of(name, store), teller)
                continue
        _note(state, activation, name, store, value, is_intact=True)
    for copy in reached.made:
        value = _item(values.get(copy.source, _UNKNOWN), copy.path)
        _note(state, activation, copy.name, copy.offset, value)


def _exchange(
    state: ThreadState,
    activation: Activation,
    frame: FrameType,
    offset: int,
    values: Any,
    never: Ways,
) -> Look | None:
    """Remember a look at a function that runs once, and return the one before it."""
    call = state.stack[-1] if state.stack else None
    if call is None:
        return None
    if call.looks is None:
        call.looks = {}
    if activation in call.looks:
        last = call.looks[activation]
        is_alone = last is not None
    else:
        last = None
        is_alone = runs_once(state, call, activation, frame)
    look: Look | None = None
    if is_alone:
        look = Look(offset, tuple(values), tuple(map(id, values.values())), never)
    call.looks[activation] = look
    return last


def _store_of(name: str, values: Any, reached: Reached, last: Look | None) -> int | None:
    """The store, or BEFORE for the entry, that gave a variable what it holds."""
    value = values[name]
    stores = []
    for store in reached.stores_of(name):
        if store == BEFORE and last is not None and not last.had(name, value):
            continue
        copy = reached.intact(name, store)
        if copy is not None:
            copied = _item(values.get(copy.source, _UNKNOWN), copy.path)
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
        offset = None if store == BEFORE else store
        state.recorder.note_variable(activation, name_of(name), offset, raw)


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
    if kind is Tensor:
        return id(value) not in state.reshaped
    if issubclass(kind, tuple):
        items = islice(tuple.__iter__(value), MOST_ITEMS)
        return depth < MOST_DEPTH and all(_is_as_stored(state, each, depth + 1) for each in items)
    if issubclass(kind, list | dict) or is_dataclass(kind):
        return False
    return id(value) not in state.reshaped
