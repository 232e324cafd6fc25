"""Where a frame of the program stands: the module call it runs in, and what its call has done.

For a debugger that has stopped the program. Nothing is recorded by asking. What is kept for the
next time is how often a function's places have been at work.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Final, NamedTuple

from shapetrace.events.stop import Stop, StoppedFunction
from shapetrace.recorder.call_finder import LiveCall
from shapetrace.recorder.callsite import (
    BOUNDARY,
    DEBUGGER,
    FORWARD,
    HIDDEN,
    PROGRAM,
    Activation,
    Site,
)
from shapetrace.recorder.frames import forget_locals, read_locals
from shapetrace.recorder.held import held_by
from shapetrace.recorder.marks import Mark, Marks, module_since, op_since
from shapetrace.recorder.records import ERROR, ModuleVariant
from shapetrace.recorder.turns import Turns, results_of, total_of

if TYPE_CHECKING:
    from shapetrace.recorder.session import Recorder
    from shapetrace.recorder.thread_state import ThreadState

_INLINE: Final = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>", "<lambda>"})
"""Functions that are written inside of another one's expressions."""
_RESUMED: Final = 0x20 | 0x80 | 0x200
"""The code flags of generators, coroutines and asynchronous generators: those run in parts, for
whoever asks for the next one."""
_MOST_ACTIVATIONS: Final = 10_000


class _Way(NamedTuple):
    """How a frame was reached from the module call it runs in, or from a thread's beginning."""

    call: LiveCall | None
    module: ModuleVariant | None
    activation: Activation | None
    """None where the function has not called anything that was recorded."""


@dataclass(slots=True)
class _Search:
    """Collects what one function has reached."""

    turns: Turns
    marks: Marks | None
    """None where only the order of the instructions can tell."""
    begins: Site | None
    """The place of the module call that the marks are of."""
    running: frozenset[int]
    found: dict[int, None] = field(default_factory=dict)
    taken: frozenset[int] = frozenset()
    """The places that the function looked at last has certainly come by in its present turn."""

    def take(
        self,
        activation: Activation,
        here: int | None,
        inline: frozenset[int],
        without: frozenset[int] = frozenset(),
    ) -> None:
        """Note what was reached from the sites of a function that is at an instruction.

        Of some places, by their offsets, it is not known.
        """
        at = None if here is None else activation.site_at(here)
        here = here if at is None else at.offset
        noted = [] if self.marks is None else self.marks.get(activation, [])
        marks = self.marks if noted is not None else None
        sites = [
            (site, noted[index] if noted is not None and index < len(noted) else None)
            for index, site in enumerate(activation.sites.values())
        ]
        taken: frozenset[int] | None = None
        if here is not None:
            may_repeat = self._may_repeat(activation, marks is not None)
            taken = self.turns.taken(activation, here, may_repeat, dict(_counts(sites)))
            since = (site.offset for site, mark in sites if self._is_since(site, mark))
            self.taken = taken.intersection(since)
        for site, mark in sites:
            is_here = here == site.offset
            if site.offset in without:
                continue
            if not is_here and taken is not None and site.offset not in taken:
                continue
            is_in_doubt = is_here and marks is None
            self._take_site(site, mark, is_in_doubt)
            for callee in () if is_in_doubt else (site.callees or {}).values():
                if callee.in_torch or id(callee.code) in inline:
                    self.take(callee, None, inline)

    def mixed(self, activations: list[Activation]) -> frozenset[int]:
        """The places of which one of several generators has made what another one has not.

        They run in turns, and what was called last need not be what the one that is looked at has
        called. There are several if a place in no loop was at work more than once.
        """
        totals: dict[int, int] = {}
        results: dict[int, list[object]] = {}
        for activation in activations:
            noted = None if self.marks is None else self.marks.get(activation, [])
            for index, site in enumerate(activation.sites.values()):
                mark = noted[index] if noted is not None and index < len(noted) else None
                since = dict(_counts([(site, mark)])).get(site.offset, total_of(site))
                totals[site.offset] = totals.get(site.offset, 0) + since
                known = results.setdefault(site.offset, [])
                known += [each for each in results_of(site) if each not in known]
        if not activations:
            return frozenset()
        order = self.turns.order_of(activations[0].code)
        is_several = any(
            total > 1 and not order.is_in_loop(offset) for offset, total in totals.items()
        )
        found = (offset for offset, known in results.items() if is_several and len(known) > 1)
        return frozenset(found)

    def _may_repeat(self, activation: Activation, is_marked: bool) -> bool:
        """Whether a function may have run several times, as far as nothing is marked."""
        if activation.code.co_flags & _RESUMED:
            return False  # not from its beginning
        while activation.code.co_name != "<module>":
            caller = activation.caller
            if caller is None or (caller is self.begins and not is_marked):
                return True
            if caller is self.begins:
                return False
            activation = caller.activation
            if self.turns.order_of(activation.code).is_in_loop(caller.offset):
                return True
        return False

    def _is_since(self, site: Site, mark: Mark) -> bool:
        """Whether a place was at work since the marks were made, or what it has called was."""
        if op_since(site, mark) is not None or module_since(site, mark) is not None:
            return True
        for callee in (site.callees or {}).values():
            noted = None if self.marks is None else self.marks.get(callee, [])
            if self.marks is not None and noted is None:
                continue
            for index, inner in enumerate(callee.sites.values()):
                its_mark = noted[index] if noted is not None and index < len(noted) else None
                if self._is_since(inner, its_mark):
                    return True
        return False

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


def standing_of(recorder: Recorder, frame: FrameType, thread: int | None) -> Stop | None:
    """Where a frame of a thread stands; None where that is not known.

    Of several frames of one function that wait for it, the inner one counts.

    ``thread`` is its identity, for a frame that has ended with an error and is on no stack.
    """
    ident, inner = _stack_above(frame, thread)
    state = recorder.states.get(ident or 0)
    if not recorder.active or recorder.kinds.of(frame.f_code) in (HIDDEN, BOUNDARY, DEBUGGER):
        return None
    frames = list(_with_those_around(recorder, frame))
    waiting = list(_outwards(frames[-1].f_back))
    boundaries = (each for each in (*inner, *waiting) if recorder.kinds.of(each.f_code) == BOUNDARY)
    calls = (_call_of(recorder, each) for each in boundaries)
    running = frozenset(call.variant.id for call in calls if call is not None)
    way = _way_to(recorder, state, frames[-1])
    kinds = {recorder.kinds.of(each.f_code) for each in inner}
    # A frame that an error has ended, with nothing above it, may have called something as well.
    is_waiting = not inner or PROGRAM in kinds or FORWARD in kinds
    own = _stand(recorder, state, way, frames, running, is_waiting=is_waiting)
    if way is None or own is None:
        return None
    outer: dict[int, StoppedFunction | None] = {id(frames[-1].f_code): None}
    for each in waiting:
        if recorder.kinds.of(each.f_code) in (PROGRAM, FORWARD) and id(each.f_code) not in outer:
            around = list(_with_those_around(recorder, each))
            its_way = _way_to(recorder, state, around[-1])
            if id(around[-1].f_code) not in outer:
                stand = _stand(recorder, state, its_way, around, running, is_waiting=True)
                outer[id(around[-1].f_code)] = stand
    return Stop(
        call=None if way.module is None else way.module.id,
        own=own,
        outer=tuple(stand for stand in outer.values() if stand is not None),
    )


def _stand(
    recorder: Recorder,
    state: ThreadState | None,
    way: _Way | None,
    frames: list[FrameType],
    running: frozenset[int],
    *,
    is_waiting: bool,
) -> StoppedFunction | None:
    """How far a function has come, whose frame is the last, with those of its expressions."""
    if way is None or (way.call is not None and way.call.variant.note is not None):
        return None  # stepped around: nothing was recorded there
    if way.call is None and (state is None or not state.entered or state.aside):
        return None
    code = frames[-1].f_code
    name = code.co_filename
    search = _search(recorder, state, way, frames, running)
    return StoppedFunction(
        reached=frozenset(search.found),
        file=name if name.startswith("<") else os.path.abspath(name),
        function=code.co_qualname,
        line=frames[0].f_lineno or code.co_firstlineno,
        locals=held_by(recorder, frames, is_waiting, search.taken),
    )


def module_call_of(
    recorder: Recorder, state: ThreadState | None, frame: FrameType
) -> ModuleVariant | None:
    """The module call that a frame runs in; None outside of any, and where that is not known."""
    way = _way_to(recorder, state, frame)
    return None if way is None else way.module


def _search(
    recorder: Recorder,
    state: ThreadState | None,
    way: _Way,
    frames: list[FrameType],
    running: frozenset[int],
) -> _Search:
    marks, begins = (None, None) if way.call is None else (way.call.marks, way.call.variant.site)
    search = _Search(recorder.turns, marks, begins, running)
    if way.call is not None and way.call.marks is None:
        return search  # no call has been made yet
    outer = frames[-1]
    for frame in frames[:-1]:
        own = _way_to(recorder, state, frame)
        if own is not None and own.activation is not None:
            search.take(own.activation, frame.f_lasti, _codes_inside(frame.f_code))
    search.taken = frozenset()
    inline = _codes_inside(outer.f_code) - {id(each.f_code) for each in frames[:-1]}
    if outer.f_code.co_flags & _RESUMED:
        activations = _all_of(outer.f_code, way, state)
        mixed = search.mixed(activations)
        for activation in activations:
            search.take(activation, outer.f_lasti, inline, mixed)
        search.taken = frozenset()  # by any of them
    elif way.activation is not None:
        is_new = way.call is not None and way.activation.caller is way.call.variant.site
        if not is_new or way.activation in (search.marks or {}):
            search.take(way.activation, outer.f_lasti, inline)
    return search


def _counts(sites: list[tuple[Site, Mark]]) -> Iterator[tuple[int, int]]:
    """How often places have been at work since they were marked, where that is known."""
    for site, mark in sites:
        total = total_of(site)
        if mark is None or total == 1:
            yield site.offset, total
            continue
        only, count, module, _ = mark
        is_only = module is None and site.variants is None and site.last is only
        if is_only and only is not None and only.next is None:
            yield site.offset, only.count - count


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
            call = _call_of(recorder, current)
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
        site = base.site_at(bottom.f_lasti)
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
        site = None if activation is None else activation.site_at(frame.f_lasti)
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


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _call_of(recorder: Recorder, boundary: FrameType) -> LiveCall | None:
    """The call that our module call has entered, which its own frame knows for good.

    In a forked child it may be the parent's, as it may be a former recorder's.
    """
    values = read_locals(boundary)
    try:
        call = values.get("call")
        is_ours = isinstance(call, LiveCall) and values.get("recorder") is recorder
        return call if is_ours else None
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
