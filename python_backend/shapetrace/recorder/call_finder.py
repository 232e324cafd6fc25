"""Where a call was made: finds the activation of a running frame, and module calls on the way."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from torch._C import DisableTorchFunction
from torch.nn import Module

from shapetrace._exception_table import leaving_surely
from shapetrace.recorder.callsite import (
    BOUNDARY,
    CALL_IMPL,
    DEBUGGER,
    EVALUATION,
    FORWARD,
    HANDLE_TORCH_FUNCTION,
    HANDLER,
    HIDDEN,
    TORCH,
    TORCH_MODULE,
    Activation,
    NotTheProgram,
    Site,
    api_caller,
    beginning_of,
    is_imported,
)
from shapetrace.recorder.describe import Raw, describe_value
from shapetrace.recorder.frames import forget_locals, read_locals
from shapetrace.recorder.marks import Marks, take_marks
from shapetrace.recorder.records import ModuleRecord, ModuleVariant
from shapetrace.recorder.variables import Looks

if TYPE_CHECKING:
    from shapetrace.recorder.evaluation import Evaluation
    from shapetrace.recorder.session import Recorder

_Came = TypeVar("_Came")

MOST_CALLEES = 512
"""Functions called from one place that are kept apart."""


def _nowhere() -> None:
    """Its code belongs to a place that cannot be named."""


NOWHERE = _nowhere.__code__


def _is_of_torch(chain: list[tuple[FrameType, int]]) -> bool:
    """Whether no frame of the program's is among these."""
    return all(kind in (TORCH, TORCH_MODULE) for _, kind in chain)


class LiveCall:
    """A module call that is running."""

    __slots__ = ("frame", "looks", "marks", "module", "special", "variant")

    def __init__(self, variant: ModuleVariant, special: bool) -> None:
        self.variant = variant
        self.special = special
        """Whether the call may have to be stepped around."""
        self.module: Module | None = None
        self.frame: int | None = None
        """The frame known to run directly for this call, to be forgotten with it."""
        self.looks: Looks | None = None
        """The values of its functions' variables when they were last read."""
        self.marks: Marks | None = None
        """How often its functions' calls had been made when it began; None until it makes one."""


class CallFinder:
    """Knows the frames and module calls that are running on one thread."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.kinds = recorder.kinds
        self.marks_calls = recorder.options.debugger is not None
        """Whether the calls so far may be requested in the middle of a call."""
        self.stack: list[LiveCall] = []
        self.live: dict[int, Activation] = {}
        """Activations of running frames, by the identity of the frame."""
        self.bottom: dict[int, Activation] = {}
        self.nowhere = Activation(NOWHERE, None, None, True)
        """Stands in where a call has no frame that could be shown."""
        self.dispatch_mode: Any = None
        self.aside = 0
        """How many regions we stepped around are running."""
        self.evaluation: Evaluation | None = None
        """The expression that is evaluated for the user at a stop."""
        self.evaluations: dict[Any, Evaluation] = {}
        """Evaluated expressions, by text and place."""
        self.passed_on: tuple[int, int] | None = None
        """Frame and instruction of a call that a handler passed on, which may change its result."""

    def find(self, frame: FrameType, function: Any) -> tuple[FrameType, Activation]:
        """The frame that made a call, past hidden ones, and what runs in it.

        The two usual cases come first: the forward of the innermost module call, seen for the first
        time in that call, and a function that such a forward called.
        """
        outer = frame.f_back
        if outer is not None:
            if outer.f_code is CALL_IMPL:
                # This function of torch's is called by another one of torch's.
                boundary = outer.f_back.f_back  # type: ignore[union-attr]
                if (
                    boundary is not None
                    and boundary.f_code is self.recorder.boundary
                    and self.stack
                ):
                    call = self.stack[-1]
                    callees = call.variant.callees
                    activation = None if callees is None else callees.get(id(frame.f_code))
                    if activation is not None:
                        self._register(call, frame, activation)
                        return frame, activation
            else:
                known = self.live.get(id(outer))
                if known is not None and known.code is outer.f_code:
                    site = known.sites.get(outer.f_lasti)
                    if site is None:
                        site = known.aliases.get(outer.f_lasti)
                    if site is not None and site.callees is not None:
                        activation = site.callees.get(id(frame.f_code))
                        if activation is not None and not activation.is_forward:
                            return frame, activation
        if self.kinds.of(frame.f_code) == HANDLER:
            frame = self._past_handlers(frame, function)
        frame = self.visible(frame)
        return frame, self.locate(frame)

    def _register(self, call: LiveCall, frame: FrameType, activation: Activation) -> None:
        """Remember that a frame runs directly for a module call."""
        if call.frame is not None:
            self.live.pop(call.frame, None)  # a hook's, which is over
        call.frame = id(frame)
        self.live[call.frame] = activation
        if self.marks_calls:
            if call.marks is None:
                call.marks = {}
            take_marks(activation, call.marks)

    def _past_handlers(self, frame: FrameType, function: Any) -> FrameType:
        may_differ = False
        for _ in range(8):
            if self.kinds.of(frame.f_code) != HANDLER or frame.f_back is None:
                break
            names = frame.f_code.co_varnames
            position = 2 if names and names[0] in ("self", "cls") else 1
            values = read_locals(frame)
            passed_on = len(names) >= position and values.get(names[position - 1]) is function
            forget_locals(frame, values)
            if not passed_on:
                break
            may_differ |= not self.kinds.is_torch(frame.f_code)
            frame = frame.f_back
            if frame.f_code is HANDLE_TORCH_FUNCTION and frame.f_back is not None:
                frame = api_caller(frame.f_back, function)
        self.passed_on = (id(frame), frame.f_lasti) if may_differ else None
        return frame

    def visible(self, frame: FrameType) -> FrameType:
        """The innermost frame, from this one on, that is the program's or torch's."""
        current: FrameType | None = frame
        while current is not None:
            if self.kinds.of(current.f_code) not in (HIDDEN, BOUNDARY):
                return current
            current = current.f_back
        return frame

    def locate(self, frame: FrameType) -> Activation:
        """The activation of a running frame, walking out to the innermost one that is known.

        Raises ``NotTheProgram`` where a debugger stands in between, and for what only torch does
        while it is imported.
        """
        chain: list[tuple[FrameType, int]] = []
        current: FrameType | None = frame
        call: LiveCall | None = None
        known: Activation | None = None
        while current is not None:
            known = self.live.get(id(current))
            if known is not None and known.code is current.f_code:
                break
            known = None
            kind = self.kinds.of(current.f_code)
            if kind == BOUNDARY:
                if self.stack:
                    call = self.stack[-1]
                    break
            elif kind == DEBUGGER:
                raise NotTheProgram
            elif kind == EVALUATION:
                if self.evaluation is not None:
                    return self._descend(chain, None, None, self.evaluation)
            elif kind != HIDDEN:
                if kind == TORCH_MODULE and is_imported(current) and _is_of_torch(chain):
                    raise NotTheProgram
                chain.append((current, kind))
            current = current.f_back
        if known is not None and current is not None:
            if not chain:
                return known
            return self._descend(chain, site_of(known, current.f_lasti), None)
        return self._descend(chain, None, call)

    def _descend(
        self,
        chain: list[tuple[FrameType, int]],
        site: Site | None,
        call: LiveCall | None,
        evaluation: Evaluation | None = None,
    ) -> Activation:
        module: ModuleVariant | None
        if call is not None:
            module = call.variant
            callees = module.callees
            if callees is None:
                callees = module.callees = {}
            site = module.site
        elif site is not None:
            module = site.activation.module
            callees = callees_of(site)
        elif evaluation is not None:
            module = evaluation.module
            callees = evaluation.callees
        else:
            module = None
            callees = self.bottom
        activation: Activation | None = None
        while chain:
            frame, kind = chain.pop()
            code = frame.f_code
            if kind == FORWARD and call is None and site is not None:
                implicit = self._implicit_call(frame, code, site)
                if implicit is not None:
                    module = implicit
                    callees = module.callees
                    if callees is None:
                        callees = module.callees = {}
            activation = callees.get(id(code))
            if activation is None and len(callees) >= MOST_CALLEES:
                self.recorder.note("code that is made anew for each call", code.co_filename)
                activation = callees.get(0)
                if activation is None:
                    activation = callees[0] = Activation(NOWHERE, site, module, True)
            if activation is None:
                in_torch = kind == TORCH or self.kinds.is_torch(code)
                activation = callees[id(code)] = Activation(
                    code, site, module, in_torch, kind == FORWARD
                )
            if call is not None:
                self._register(call, frame, activation)
                call = None
            if chain:
                site = site_of(activation, frame.f_lasti)
                callees = callees_of(site)
        if activation is None:
            # Nothing but hidden frames: a call that torch itself makes at a thread's bottom.
            return self.nowhere
        return activation

    def _record(self, site: Site, module: Module) -> ModuleRecord:
        """The record of a module, which is asked about itself for it, by code of its own."""
        return self.quietly(self.recorder.book.record, site, module)

    @leaving_surely
    def quietly(self, function: Callable[..., _Came], *args: Any) -> _Came:
        """Call a function that runs code of a module's own, which is not to be recorded."""
        mode, aside = self.dispatch_mode, self.aside
        quiet = mode is not None and mode.quiet
        try:
            self.aside = aside + 1
            if mode is not None:
                mode.quiet = True
            with DisableTorchFunction():
                return function(*args)
        finally:
            self.aside = aside
            if mode is not None:
                mode.quiet = quiet

    @leaving_surely
    def _implicit_call(self, frame: FrameType, code: CodeType, site: Site) -> ModuleVariant | None:
        """The module call that ``model.forward(x)`` is, where forward was called directly."""
        values = read_locals(frame)
        try:
            module = values.get(code.co_varnames[0])
            if not issubclass(type(module), Module):
                return None
            parent = site.activation.module
            if parent is not None and parent.record.reference() is module:
                return None  # super().forward(x), or a recursion within the same call
            record = self._record(site, module)
            if record.last is None:
                names = code.co_varnames[1 : code.co_argcount]
                if (id(frame), id(code)) in self.recorder.running_before:
                    names = ()  # They may have been given other values since the call.
                present = [name for name in names if name in values]
                with DisableTorchFunction():
                    inputs = tuple(describe_value(values[name]) for name in present)
                self._add_module(record, inputs, tuple(present), None, implicit=True)
                if parent is None and record.parameters and self.evaluation is None:
                    self.recorder.passes_seen += 1
            return record.last
        finally:
            forget_locals(frame, values)

    def _add_module(
        self,
        record: ModuleRecord,
        inputs: tuple[Raw, ...],
        keywords: tuple[str, ...],
        names: tuple[str | None, ...] | None,
        implicit: bool = False,
    ) -> ModuleVariant:
        intern = self.recorder.intern
        described = tuple(map(intern, inputs))
        variant = ModuleVariant(self.recorder.next_id(), record, described, keywords, names)
        variant.implicit = implicit
        listed = self.recorder.modules
        try:
            self.recorder.add_module(variant)
            record.variants[described, keywords] = variant
            record.last = variant
        except BaseException:
            if listed and listed[-1] is variant:
                del listed[-1]  # What is in the list and nowhere else is never counted.
            raise
        return variant


def site_of(activation: Activation, offset: int) -> Site:
    """The site of an activation at an instruction."""
    site = activation.site_at(offset)
    if site is None:
        begins = beginning_of(activation.code, offset)
        site = activation.sites.get(begins)
        if site is None:
            site = activation.sites[begins] = Site(activation, begins)
        if begins != offset:
            activation.aliases[offset] = site
    return site


def callees_of(site: Site) -> dict[int, Activation]:
    """The functions called from a site."""
    callees = site.callees
    if callees is None:
        callees = site.callees = {}
    return callees
