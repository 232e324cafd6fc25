"""Where a frame of the program stands: the module call it runs in, and what its call has done.

For a debugger that has stopped the program. Nothing is recorded by asking, and nothing is kept.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Final, NamedTuple

from shapetrace.recorder.call_finder import LiveCall
from shapetrace.recorder.callsite import BOUNDARY, DEBUGGER, FORWARD, HIDDEN, Activation, Site
from shapetrace.recorder.frames import forget_locals, read_locals
from shapetrace.recorder.marks import Mark, Marks, module_since, op_since
from shapetrace.recorder.order import Order
from shapetrace.recorder.records import ERROR, ModuleVariant

if TYPE_CHECKING:
    from shapetrace.recorder.session import Recorder
    from shapetrace.recorder.thread_state import ThreadState

_INLINE: Final = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>", "<lambda>"})
"""Functions that are written inside of another one's expressions."""
_RESUMED: Final = 0x20 | 0x80 | 0x200
"""The code flags of generators, coroutines and asynchronous generators: those run in parts, for
whoever asks for the next one."""
_MOST_ACTIVATIONS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Standing:
    """What a frame belongs to."""

    call: int | None
    """The module call it runs in; None outside of any."""
    reached: tuple[int, ...]
    """The ops and module calls that the function itself has made in this call so far."""
    file: str
    function: str
    line: int


class _Way(NamedTuple):
    """How a frame was reached from the module call it runs in, or from a thread's beginning."""

    call: LiveCall | None
    module: ModuleVariant | None
    activation: Activation | None
    """None where the function has not called anything that was recorded."""


@dataclass(slots=True)
class _Search:
    """Collects what one function has reached."""

    marks: Marks | None
    """None where only the order of the instructions can tell."""
    running: frozenset[int]
    found: dict[int, None] = field(default_factory=dict)

    def take(self, activation: Activation, here: int | None, inline: frozenset[int]) -> None:
        """Note what was reached from the sites of a function that is at an instruction."""
        order = None if here is None else Order(activation.code)
        noted = [] if self.marks is None else self.marks.get(activation, [])
        marks = self.marks if noted is not None else None
        for index, site in enumerate(activation.sites.values()):
            mark: Mark = noted[index] if noted is not None and index < len(noted) else None
            is_here = here == site.offset
            if not (here is None or order is None or is_here):
                is_ahead = not order.may_be_before(site.offset, here)
                if is_ahead:
                    continue
            is_in_doubt = is_here and marks is None
            self._take_site(site, mark, is_in_doubt)
            for callee in () if is_in_doubt else (site.callees or {}).values():
                if callee.in_torch or id(callee.code) in inline:
                    self.take(callee, None, inline)

    def _take_site(self, site: Site, mark: Mark, is_in_doubt: bool) -> None:
        op = op_since(site, mark)
        if op is not None:
            failed = op.output is not None and op.output[0] is ERROR
            if failed or not is_in_doubt:
                self.found[op.id] = None
        module = module_since(site, mark)
        if module is None or module.id in self.running:
            return
        if module.error is not None or not is_in_doubt:
            self.found[module.id] = None


def standing_of(recorder: Recorder, frame: FrameType, thread: int | None) -> Standing | None:
    """Where a frame of a thread stands; None where that is not known.

    ``thread`` is its identity, for a frame that has ended with an error and is on no stack.
    """
    ident, inner = _stack_above(frame, thread)
    state = recorder.states.get(ident or 0)
    if not recorder.active or recorder.kinds.of(frame.f_code) in (HIDDEN, BOUNDARY, DEBUGGER):
        return None
    frames = list(_with_those_around(recorder, frame))
    outer = frames[-1]
    way = _way_to(recorder, state, outer)
    if way is None or (way.call is not None and way.call.variant.note is not None):
        return None  # stepped around: nothing was recorded there
    if way.call is None and (state is None or not state.entered or state.aside):
        return None
    running = frozenset(
        call.variant.id for call in map(_call_of, _boundaries(recorder, inner)) if call is not None
    )
    reached = _reached(recorder, state, way, frames, running)
    code = outer.f_code
    name = code.co_filename
    return Standing(
        call=None if way.module is None else way.module.id,
        reached=tuple(sorted(reached)),
        file=name if name.startswith("<") else os.path.abspath(name),
        function=code.co_qualname,
        line=frame.f_lineno or code.co_firstlineno,
    )


def module_call_of(
    recorder: Recorder, state: ThreadState | None, frame: FrameType
) -> ModuleVariant | None:
    """The module call that a frame runs in; None outside of any, and where that is not known."""
    way = _way_to(recorder, state, frame)
    return None if way is None else way.module


def _reached(
    recorder: Recorder,
    state: ThreadState | None,
    way: _Way,
    frames: list[FrameType],
    running: frozenset[int],
) -> dict[int, None]:
    search = _Search(None if way.call is None else way.call.marks, running)
    if way.call is not None and way.call.marks is None:
        return {}  # no call has been made yet
    outer = frames[-1]
    inline = _codes_inside(outer.f_code) - {id(each.f_code) for each in frames[:-1]}
    if outer.f_code.co_flags & _RESUMED:
        for activation in _all_of(outer.f_code, way, state):
            search.take(activation, outer.f_lasti, inline)
    elif way.activation is not None:
        is_new = way.call is not None and way.activation.caller is way.call.variant.site
        if is_new and way.activation not in (search.marks or {}):
            return {}
        search.take(way.activation, outer.f_lasti, inline)
    for frame in frames[:-1]:
        own = _way_to(recorder, state, frame)
        if own is not None and own.activation is not None:
            search.take(own.activation, frame.f_lasti, _codes_inside(frame.f_code))
    return search.found


def _stack_above(frame: FrameType, thread: int | None) -> tuple[int | None, list[FrameType]]:
    """The thread on whose stack a frame is, and what stands above it there."""
    for ident, top in sys._current_frames().items():
        inner: list[FrameType] = []
        current: FrameType | None = top
        while current is not None and current is not frame:
            inner.append(current)
            current = current.f_back
        if current is frame:
            return ident, inner
    return thread, []


def _with_those_around(recorder: Recorder, frame: FrameType) -> Iterator[FrameType]:
    """A frame, and where it runs an expression's own function, those of the expression."""
    yield frame
    while frame.f_code.co_name in _INLINE:
        outer = frame.f_back
        while outer is not None and recorder.kinds.of(outer.f_code) == HIDDEN:
            outer = outer.f_back
        if outer is None or id(frame.f_code) not in _codes_inside(outer.f_code):
            return
        frame = outer
        yield frame


def _codes_inside(code: CodeType) -> frozenset[int]:
    """The identities of the functions that are written inside of a function's expressions."""
    found: set[int] = set()
    pending = [code]
    for each in pending:
        for constant in each.co_consts:
            if isinstance(constant, CodeType) and constant.co_name in _INLINE:
                found.add(id(constant))
                pending.append(constant)
    return frozenset(found)


def _way_to(recorder: Recorder, state: ThreadState | None, frame: FrameType) -> _Way | None:
    """How a frame is found in what was recorded; None where a debugger runs it."""
    chain: list[tuple[FrameType, int]] = []
    call: LiveCall | None = None
    base: Activation | None = None
    current: FrameType | None = frame
    while current is not None:
        kind = recorder.kinds.of(current.f_code)
        if kind == BOUNDARY:
            call = _call_of(current)
            if call is not None:
                break
        elif kind == DEBUGGER:
            return None
        elif kind != HIDDEN:
            known = None if state is None else state.live.get(id(current))
            if known is not None and known.code is current.f_code and known.module is None:
                base = known
                break
            chain.append((current, kind))
        current = current.f_back
    return _follow(chain, call, base, current, state)


def _follow(
    chain: list[tuple[FrameType, int]],
    call: LiveCall | None,
    base: Activation | None,
    bottom: FrameType | None,
    state: ThreadState | None,
) -> _Way:
    site: Site | None = None
    activation: Activation | None = base
    module: ModuleVariant | None = None
    callees: dict[int, Activation] | None = None
    is_first = call is not None
    if call is not None:
        module = call.variant
        callees = module.callees
    elif base is not None and bottom is not None:
        site = base.sites.get(bottom.f_lasti)
        callees = None if site is None else site.callees
    elif state is not None:
        callees = state.bottom
    for frame, kind in reversed(chain):
        if kind == FORWARD and not is_first and site is not None:
            implicit = _implicit_call(frame, site)
            if implicit is not None:
                module, callees = implicit, implicit.callees
        is_first = False
        activation = None if callees is None else callees.get(id(frame.f_code))
        site = None if activation is None else activation.sites.get(frame.f_lasti)
        callees = None if site is None else site.callees
    return _Way(call, module, activation)


def _implicit_call(frame: FrameType, site: Site) -> ModuleVariant | None:
    """The module call that a frame is whose forward was called directly."""
    values = read_locals(frame)
    try:
        module = values.get(frame.f_code.co_varnames[0])
        record = None if site.modules is None else site.modules.get(id(module))
        if record is None or record.reference() is not module or record.last is None:
            return None
        variant: ModuleVariant = record.last
        return variant if variant.implicit else None
    finally:
        forget_locals(frame, values)


def _boundaries(recorder: Recorder, frames: list[FrameType]) -> Iterator[FrameType]:
    return (frame for frame in frames if recorder.kinds.of(frame.f_code) == BOUNDARY)


def _call_of(boundary: FrameType) -> LiveCall | None:
    """The call that our module call has entered, which its own frame knows for good."""
    values = read_locals(boundary)
    try:
        call = values.get("call")
        return call if isinstance(call, LiveCall) else None
    finally:
        forget_locals(boundary, values)


def _all_of(code: CodeType, way: _Way, state: ThreadState | None) -> list[Activation]:
    """What runs a code object anywhere in a module call, or outside of any."""
    roots = way.module.callees if way.module is not None else state and state.bottom
    found: list[Activation] = []
    pending = list((roots or {}).values())
    for each in pending:
        if each.code is code:
            found.append(each)
        if len(pending) < _MOST_ACTIVATIONS:
            for site in each.sites.values():
                pending.extend((site.callees or {}).values())
    return found
