"""One thread's part of a recording: which module calls are running and where calls come from."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType, MethodType
from typing import TYPE_CHECKING, Any

from torch import Tensor
from torch._C import DisableTorchFunction
from torch.nn import Module

from shapetrace.recorder.arguments import argument_texts
from shapetrace.recorder.callsite import (
    BOUNDARY,
    CALL_IMPL,
    FORWARD,
    HANDLE_TORCH_FUNCTION,
    HANDLER,
    HIDDEN,
    TORCH,
    Activation,
    Site,
    api_caller,
)
from shapetrace.recorder.describe import Raw, describe_tensor, describe_value
from shapetrace.recorder.kinds import RESHAPING
from shapetrace.recorder.names import forget_locals, input_names, read_locals
from shapetrace.recorder.records import (
    ERROR,
    MOST_KERNELS,
    MOST_VARIANTS,
    KernelVariant,
    ModuleRecord,
    ModuleVariant,
    OpVariant,
    describe_error,
    widen,
    widen_all,
)
from shapetrace.recorder.tracebacks import clean_on_arrival

if TYPE_CHECKING:
    from shapetrace.recorder.session import Recorder


MOST_RESHAPED = 4096
"""Tensors changed in place that are remembered; past that, a claim may be made about one."""


class LiveCall:
    """A module call that is running."""

    __slots__ = ("frame", "module", "seen", "seen_at", "seen_in", "special", "variant")

    def __init__(self, variant: ModuleVariant, special: bool) -> None:
        self.variant = variant
        self.special = special
        """Whether the call may have to be stepped around."""
        self.module: Module | None = None
        self.frame: int | None = None
        """The frame known to run directly for this call, to be forgotten with it."""
        self.seen: dict[str, int] | None = None
        """The identity of each local of ``forward`` when it was last looked at."""
        self.seen_at: int | None = None
        self.seen_in: int = 0


class ThreadState:
    """Finds the site of each call and the variant it repeats, or makes a new one."""

    def __init__(self, recorder: Recorder, thread: str | None) -> None:
        self.recorder = recorder
        self.thread = thread
        self.kinds = recorder.kinds
        self.stack: list[LiveCall] = []
        self.live: dict[int, Activation] = {}
        """Activations of running frames, by the identity of the frame."""
        self.bottom: dict[int, Activation] = {}
        self.copied: dict[int, Activation | None] = {}
        """Frames whose locals were copied because an exception arrived, with their activations."""
        self.function_mode: Any = None
        self.dispatch_mode: Any = None
        self.entered = False
        """Whether the modes belong on this thread's stacks now."""
        self.stays = False
        """Whether the thread is watched as long as it runs, not only during module calls."""
        self.aside = 0
        """How many regions we stepped around are running."""
        self.compiled_by: int | None = None
        """What entered the region made by torch.compile that is running."""
        self.in_pass = False
        """Whether the outermost call that is running is a forward pass."""
        self.resting = 0
        """How many module calls are running that are not looked at because nothing is new."""
        self.reshaped: set[int] = set()
        """Identities of tensors whose own shape was changed in place since they were stored."""
        self.passed_on: tuple[int, int] | None = None
        """Frame and instruction of a call that came through a handler that may change its result."""
        self.current: OpVariant | None = None
        """The op whose kernels are now being run."""

    # Where a call comes from

    def find(self, frame: FrameType, function: Any) -> tuple[FrameType, Activation]:
        """The frame that made a call, past hidden ones, and what runs in it.

        The two usual cases come first: the forward of the innermost module call, seen for the first
        time in that call, and a function that such a forward called.
        """
        if self.copied:
            self._forget_copies(frame)
        outer = frame.f_back
        if outer is not None:
            if outer.f_code is CALL_IMPL:
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
                    if site is not None and site.callees is not None:
                        activation = site.callees.get(id(frame.f_code))
                        if activation is not None and not activation.is_forward:
                            return frame, activation
        if self.kinds.of(frame.f_code) == HANDLER:
            frame = self._past_handlers(frame, function)
        frame = self.visible(frame)
        return frame, self.locate(frame)

    def clean_on_arrival(self, frame: FrameType) -> None:
        """Have a traceback cleaned when its exception arrives in a frame."""
        if clean_on_arrival(frame):
            # Which copies the frame's locals. Without its entry the next op there comes to ``find``.
            self.copied[id(frame)] = self.live.pop(id(frame), None)

    def _forget_copies(self, frame: FrameType) -> None:
        current: FrameType | None = frame
        while current is not None:
            if id(current) in self.copied:
                activation = self.copied[id(current)]
                if activation is not None and activation.code is current.f_code:
                    self.live[id(current)] = activation
                forget_locals(current, read_locals(current))
            current = current.f_back
        self.copied.clear()

    def _register(self, call: LiveCall, frame: FrameType, activation: Activation) -> None:
        """Remember that a frame runs directly for a module call."""
        if call.frame is not None:
            self.live.pop(call.frame, None)  # a hook's, which is over
        call.frame = id(frame)
        self.live[call.frame] = activation

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
        """The activation of a running frame, walking out to the innermost one that is known."""
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
            elif kind != HIDDEN:
                chain.append((current, kind))
            current = current.f_back
        if known is not None and current is not None:
            if not chain:
                return known
            return self._descend(chain, site_of(known, current.f_lasti), None)
        return self._descend(chain, None, call)

    def _descend(
        self, chain: list[tuple[FrameType, int]], site: Site | None, call: LiveCall | None
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
            return self.recorder.nowhere
        return activation

    def _record(self, site: Site, module: Module) -> ModuleRecord:
        """The record of a module, which is asked about itself for it, by code of its own."""
        with self._quietly():
            return self.recorder.book.record(site, module)

    @contextmanager
    def _quietly(self) -> Iterator[None]:
        mode = self.dispatch_mode
        quiet = mode is not None and mode.quiet
        self.aside += 1
        try:
            if mode is not None:
                mode.quiet = True
            with DisableTorchFunction():
                yield
        finally:
            self.aside -= 1
            if mode is not None:
                mode.quiet = quiet

    def _implicit_call(self, frame: FrameType, code: CodeType, site: Site) -> ModuleVariant | None:
        """The module call that ``model.forward(x)`` is, where forward was called directly."""
        values = read_locals(frame)
        try:
            module = values.get(code.co_varnames[0])
            if not isinstance(module, Module):
                return None
            parent = site.activation.module
            if parent is not None and parent.record.reference() is module:
                return None  # super().forward(x), or a recursion within the same call
            record = self._record(site, module)
            if record.last is None:
                names = code.co_varnames[1 : code.co_argcount]
                present = [name for name in names if name in values]
                with DisableTorchFunction():
                    inputs = tuple(describe_value(values[name]) for name in present)
                variant = self._add_module(record, inputs, tuple(present), None)
                variant.implicit = True
                if parent is None and record.parameters:
                    self.recorder.passes_seen += 1
            return record.last
        finally:
            forget_locals(frame, values)

    # Ops

    def draft(
        self,
        frame: FrameType,
        site: Site,
        function: Any,
        args: Any,
        kwargs: Any,
        inputs: tuple[Raw, ...],
    ) -> OpVariant:
        """The variant for inputs that the last call from this site did not have."""
        variants: dict[Any, OpVariant] | None = site.variants
        if variants is None and site.last is not None:
            first = site.last
            variants = site.variants = {(first.function, first.inputs): first}
        function = _lasting(function)
        key = (function, inputs)
        if variants is not None:
            known = variants.get(key)
            if known is not None:
                return known
            if len(variants) >= MOST_VARIANTS:
                return self._wide_op(site, function, inputs, args, kwargs)
        name = getattr(function, "__name__", "")
        if name in RESHAPING and len(self.reshaped) < MOST_RESHAPED:
            self.reshaped.add(id(args[0]))
        with DisableTorchFunction():
            names = input_names(self, frame, site, args, kwargs)
            texts = self.recorder.intern(argument_texts(function, args, kwargs))
        intern = self.recorder.intern
        described = intern(tuple(map(intern, inputs)))
        variant = OpVariant(
            self.recorder.next_id(), site, function, described, texts, names, self.thread
        )
        site.asks_for_truth |= name == "__bool__"
        if self.passed_on == (id(frame), frame.f_lasti):
            variant.rarely().passed_on = True
        if variants is not None:
            variants[function, described] = variant
        self.recorder.add_op(variant)
        return variant

    def _wide_op(
        self, site: Site, function: Any, inputs: tuple[Raw, ...], args: Any, kwargs: Any
    ) -> OpVariant:
        # A function that is made anew for each call would otherwise have a variant for each.
        key = (function if len(site.variants) < 2 * MOST_VARIANTS else None, None)
        variant: OpVariant | None = site.variants.get(key)
        if variant is None:
            texts = self.recorder.intern(argument_texts(function, args, kwargs))
            variant = OpVariant(
                self.recorder.next_id(), site, function, inputs, texts, None, self.thread
            )
            variant.rarely().wide = True
            site.variants[key] = variant
            self.recorder.add_op(variant)
        else:
            widened = widen_all(variant.inputs, inputs)
            if widened is not variant.inputs:
                variant.inputs = widened
        return variant

    def with_output(self, variant: OpVariant, output: Raw, args: Any, kwargs: Any) -> OpVariant:
        """The variant of a call whose inputs are known, by what came out of it."""
        if variant.output is None:
            variant.output = self.recorder.intern(output)
            return variant
        if variant.wide:
            variant.output = widen(variant.output, output)
            return variant
        if variant.output == output:
            return variant
        others = 0
        current = variant.next
        while current is not None and current is not variant:
            if current.output == output:
                return current
            if current.wide:
                current.output = widen(current.output or output, output)
                return current
            others += 1
            current = current.next
        if others >= MOST_VARIANTS:
            variant.rarely().wide = True
            variant.output = widen(variant.output, output)
            return variant
        with DisableTorchFunction():
            texts = self.recorder.intern(argument_texts(variant.function, args, kwargs))
        another = OpVariant(
            self.recorder.next_id(),
            variant.site,
            variant.function,
            variant.inputs,
            texts,
            variant.names,
            self.thread,
        )
        another.output = self.recorder.intern(output)
        rare = another.rarely()
        rare.passed_on = variant.passed_on
        rare.next = variant.next or variant
        variant.rarely().next = another
        self.recorder.add_op(another)
        return another

    def failed(self, variant: OpVariant, error: BaseException, args: Any, kwargs: Any) -> OpVariant:
        """The variant of a call that raised."""
        return self.with_output(variant, describe_error(error), args, kwargs)

    # Kernels

    def add_kernel(self, function: Any, args: Any, kwargs: Any, inputs: Any, output: Raw) -> None:
        """Record a call of an aten operator for the op that is now running."""
        parent = self.current
        if parent is not None:
            rare = parent.rarely()
            if rare.kernels is None:
                rare.kernels = {}
            kernels, site = rare.kernels, parent.site
        else:
            frame = sys._getframe(2)
            activation = self.locate(frame)
            site = site_of(activation, frame.f_lasti)
            kernels = self.recorder.kernels_of(site)
        key = (function, inputs, output)
        known = kernels.get(key)
        if known is None:
            most = 1 if parent is not None and parent.wide else MOST_KERNELS
            alike = sum(each.function is function for each in kernels.values())
            if alike >= most:
                key = (function, None, None)
                known = kernels.get(key)
        if known is None:
            intern = self.recorder.intern
            texts = intern(argument_texts(function, args, kwargs))
            known = kernels[key] = KernelVariant(
                self.recorder.next_id(), parent, site, function, inputs, texts, intern(output)
            )
            self.recorder.add_kernel(known)
        elif key[1] is None:
            known.inputs = widen_all(known.inputs, inputs)
            known.output = widen(known.output, output)
        known.count += 1

    # Module calls

    def enter(
        self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType
    ) -> LiveCall:
        """Note that a module is called, before it runs."""
        described = []
        keywords: tuple[str, ...] = ()
        with DisableTorchFunction():
            for value in args:
                described.append(
                    describe_tensor(value) if type(value) is Tensor else describe_value(value)
                )
            if kwargs:
                keywords = tuple(kwargs)
                described += [describe_value(value) for value in kwargs.values()]
        inputs = tuple(described)
        activation = self.live.get(id(frame))
        if activation is None or activation.code is not frame.f_code:
            frame, activation = self.find(frame, None)
        site = activation.sites.get(frame.f_lasti)
        if site is None:
            site = site_of(activation, frame.f_lasti)
        record: ModuleRecord | None = None
        if site.modules is not None:
            record = site.modules.get(id(module))
        if record is None or record.reference() is not module:
            record = self._record(site, module)
        variant = record.last
        if variant is None or variant.inputs != inputs or variant.keywords != keywords:
            variant = self._find_module(record, inputs, keywords, frame, args, kwargs)
        variant.count += 1
        record.calls[0] += 1
        call: LiveCall | None = variant.idle
        if call is None:
            call = LiveCall(variant, record.special)
        else:
            variant.idle = None
        call.module = module
        self.stack.append(call)
        return call

    def _find_module(
        self,
        record: ModuleRecord,
        inputs: tuple[Raw, ...],
        keywords: tuple[str, ...],
        frame: FrameType,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> ModuleVariant:
        known = record.variants.get((inputs, keywords))
        if known is not None:
            record.last = known
            return known
        parent = record.site.activation.module
        most = 1 if parent is not None and parent.wide else MOST_VARIANTS
        if len(record.variants) >= most:
            return self._wide_module(record, inputs, keywords)
        with DisableTorchFunction():
            names = input_names(self, frame, record.site, args, kwargs)
        return self._add_module(record, inputs, keywords, names)

    def _wide_module(
        self, record: ModuleRecord, inputs: tuple[Raw, ...], keywords: tuple[str, ...]
    ) -> ModuleVariant:
        variant = record.wide
        if variant is None:
            variant = ModuleVariant(self.recorder.next_id(), record, inputs, keywords, None)
            variant.wide = True
            record.wide = variant
            self.recorder.add_module(variant)
        else:
            variant.inputs = widen_all(variant.inputs, inputs)
        return variant

    def _add_module(
        self,
        record: ModuleRecord,
        inputs: tuple[Raw, ...],
        keywords: tuple[str, ...],
        names: tuple[str | None, ...] | None,
    ) -> ModuleVariant:
        intern = self.recorder.intern
        described = tuple(map(intern, inputs))
        variant = ModuleVariant(self.recorder.next_id(), record, described, keywords, names)
        record.variants[described, keywords] = variant
        record.last = variant
        self.recorder.add_module(variant)
        return variant

    def leave(self, call: LiveCall, result: Any) -> None:
        """Note what a module returned."""
        variant = call.variant
        try:
            with DisableTorchFunction():
                output = (
                    describe_tensor(result) if type(result) is Tensor else describe_value(result)
                )
            if variant.output != output:
                if variant.output is None:
                    variant.output = self.recorder.intern(output)
                    self.recorder.changed()
                    if variant.record.unfinished and call.module is not None:
                        with self._quietly():
                            self.recorder.book.finish(variant.record, call.module)
                else:
                    variant.output = widen(variant.output, output)
        finally:
            stack = self.stack
            if stack and stack[-1] is call:
                stack.pop()
                if call.frame is not None:
                    self.live.pop(call.frame, None)
                    call.frame = None
                call.module = call.seen = None
                variant.idle = call
            else:
                self.drop(call)

    def leave_failed(self, call: LiveCall, error: BaseException) -> None:
        """Note that a module call raised."""
        variant = call.variant
        try:
            ending = describe_error(error)
            if ending[0] is not ERROR:
                if variant.output is None:
                    variant.output = ending
            elif variant.error is None:
                variant.error = ending[1:]
                self.recorder.changed()
        finally:
            self.drop(call)

    def drop(self, call: LiveCall) -> None:
        """Forget a module call that is over, and any within it that never ended."""
        while self.stack:
            over = self.stack.pop()
            if over.frame is not None:
                self.live.pop(over.frame, None)
            if over is call:
                break


def _lasting(function: Any) -> Any:
    """What stands for a function: a bound method is made anew at each access and holds its object."""
    if type(function) is MethodType:
        function = function.__func__
    try:
        hash(function)
    except Exception:
        return type(function)
    return function


def site_of(activation: Activation, offset: int) -> Site:
    """The site of an activation at an instruction."""
    site = activation.sites.get(offset)
    if site is None:
        site = activation.sites[offset] = Site(activation, offset)
    return site


def callees_of(site: Site) -> dict[int, Activation]:
    """What has been called from a site."""
    callees = site.callees
    if callees is None:
        callees = site.callees = {}
    return callees
