"""One thread's part of a recording: which module calls are running and where calls come from."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from threading import get_ident
from types import FrameType, MethodType
from typing import TYPE_CHECKING, Any, Final

from torch import Tensor
from torch._C import DisableTorchFunction
from torch.nn import Module

from shapetrace._asynchronous import is_asynchronous
from shapetrace._exception_table import leaving_surely
from shapetrace.recorder.arguments import argument_texts
from shapetrace.recorder.call_finder import CallFinder, LiveCall, site_of
from shapetrace.recorder.callsite import Activation, NotTheProgram, Site
from shapetrace.recorder.debuggers import STATE_METHODS, hide_methods
from shapetrace.recorder.describe import Raw, describe_tensor, describe_value
from shapetrace.recorder.kinds import RESHAPING
from shapetrace.recorder.names import input_names
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
from shapetrace.recorder.told import Told
from shapetrace.recorder.variables import note_callers, note_locals, note_returned

if TYPE_CHECKING:
    from shapetrace.recorder.session import Recorder


LOOKS_AGAIN: Final = frozenset({2, 3, 4, 8, 16, 32, 64})
"""The calls of one place at which variables are read although nothing is new."""
LAST_LOOK: Final = max(LOOKS_AGAIN)

MOST_RESHAPED = 4096
"""Tensors changed in place that are remembered; past that, a claim may be made about one."""


class ThreadState(CallFinder):
    """Finds the variant that each call repeats, or makes a new one."""

    def __init__(self, recorder: Recorder, thread: str | None) -> None:
        super().__init__(recorder)
        self.thread = thread
        self.function_mode: Any = None
        self.looks = False
        """Whether returned values are read: by ``values.looking_state``."""
        self.entered = False
        """Whether the modes belong on this thread's stacks now."""
        self.stays = False
        """Whether the thread is watched as long as it runs, not only during module calls."""
        self.in_region = False
        """Whether something runs that torch.compile made, and the modes are off for it."""
        self.outside_region = 0
        """How many regions we stepped around were running then."""
        self.in_pass = False
        """Whether the outermost call that is running is a forward pass."""
        self.resting = 0
        """The number of running module calls that are not recorded because nothing is new."""
        self.reshaped: set[int] = set()
        """Identities of tensors whose own shape was changed in place since they were stored."""
        self.seen: dict[tuple[Activation, str], tuple[int, int]] = {}
        """For a module's variables, which do not go away, the store and identity noted last."""
        self.told: dict[Activation, Told] = {}
        """For functions that may run again, the stores that need not be read."""
        self.current: OpVariant | None = None
        """The op whose kernels are now being run."""
        self.running: list[tuple[KernelVariant, Any, Raw, Any]] = []
        """The kernels it ran so far, each with its inputs, output and fingerprints."""
        self.ran: list[tuple[KernelVariant, Any, Raw, Any]] = []
        """Those of the op that has just ended."""
        hide_methods(self, STATE_METHODS, recorder.options.unseen)

    # Ops

    @leaving_surely
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
        debugger = self.recorder.options.debugger
        if name == "__bool__" and debugger is not None and debugger.asks_for_truth(frame):
            raise NotTheProgram
        if name in RESHAPING:
            self.note_reshaped(args[0])
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
        # In this order: what is in the list alone is never counted, and shown nowhere.
        self.recorder.add_op(variant)
        if variants is not None:
            variants[function, described] = variant
        return variant

    def note_reshaped(self, tensor: Any) -> None:
        """Note that a tensor is given another shape or dtype: it was stored as something else."""
        if len(self.reshaped) < MOST_RESHAPED:
            self.reshaped.add(id(tensor))

    def _wide_op(
        self, site: Site, function: Any, inputs: tuple[Raw, ...], args: Any, kwargs: Any
    ) -> OpVariant:
        # A function that is created for each call would otherwise have a variant for each.
        key = (function if len(site.variants) < 2 * MOST_VARIANTS else None, None)
        variant: OpVariant | None = site.variants.get(key)
        if variant is None:
            texts = self.recorder.intern(argument_texts(function, args, kwargs))
            variant = OpVariant(
                self.recorder.next_id(), site, function, inputs, texts, None, self.thread
            )
            variant.rarely().wide = True
            self.recorder.add_op(variant)
            site.variants[key] = variant
        else:
            widened = widen_all(variant.inputs, inputs)
            if widened is not variant.inputs:
                variant.inputs = widened
        return variant

    def with_output(self, variant: OpVariant, output: Raw, args: Any, kwargs: Any) -> OpVariant:
        """The variant of a call whose inputs are known, by what came out of it."""
        found = self._by_output(variant, output, args, kwargs)
        if found is not variant and self.ran:
            self._move_kernels(found)
        return found

    @leaving_surely
    def _by_output(self, variant: OpVariant, output: Raw, args: Any, kwargs: Any) -> OpVariant:
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
        self.recorder.add_op(another)
        variant.rarely().next = another
        return another

    def look_at(self, variant: OpVariant, result: Any, args: Any, kwargs: Any) -> None:
        """Note what a call returned; only where that was asked for."""
        raise NotImplementedError

    def failed(self, variant: OpVariant, error: BaseException, args: Any, kwargs: Any) -> OpVariant:
        """The variant of a call that raised."""
        return self.with_output(variant, describe_error(error), args, kwargs)

    # Kernels

    def look_at_kernel(self, function: Any, result: Any) -> Any:
        """Fingerprints of what an aten operator returned; only where that was asked for."""
        raise NotImplementedError

    def keep_looks(self, kernel: KernelVariant, looks: Any) -> None:
        """Note the fingerprints of a kernel that was counted for good."""

    def add_kernel(
        self, function: Any, args: Any, kwargs: Any, inputs: Any, output: Raw, looks: Any = None
    ) -> None:
        """Record a call of an aten operator for the op that is now running."""

        def texts() -> tuple[str, ...]:
            return argument_texts(function, args, kwargs)

        parent = self.current
        if parent is not None:
            kernel = self._count_kernel(parent, parent.site, function, texts, inputs, output)
            self.running.append((kernel, inputs, output, looks))
            return
        frame = self.visible(sys._getframe(1))
        activation = self.locate(frame)
        site = site_of(activation, frame.f_lasti)
        self.keep_looks(self._count_kernel(None, site, function, texts, inputs, output), looks)

    def _move_kernels(self, parent: OpVariant) -> None:
        """Count the kernels of the call that has just ended for the variant it turned out to be."""
        for index, (kernel, inputs, output, looks) in enumerate(self.ran):
            kernel.count -= 1
            texts = kernel.arguments
            function = kernel.function
            # The texts are asked for, if at all, before the loop goes on.
            moved = self._count_kernel(parent, parent.site, function, lambda: texts, inputs, output)  # noqa: B023
            self.ran[index] = (moved, inputs, output, looks)
        self.settle_kernels()

    def settle_kernels(self) -> None:
        """The kernels of the call that has just ended are counted for good."""
        for kernel, _, _, looks in self.ran:
            self.keep_looks(kernel, looks)
        self.ran = []

    def _count_kernel(
        self,
        parent: OpVariant | None,
        site: Site,
        function: Any,
        texts: Callable[[], tuple[str, ...]],
        inputs: Any,
        output: Raw,
    ) -> KernelVariant:
        if parent is None:
            kernels = self.recorder.kernels_of(site)
        else:
            rare = parent.rarely()
            if rare.kernels is None:
                rare.kernels = {}
            kernels = rare.kernels
        key: Any = (function, inputs, output)
        known = kernels.get(key)
        if known is None:
            most = 1 if parent is not None and parent.wide else MOST_KERNELS
            alike = sum(each.function is function for each in kernels.values())
            if alike >= most:
                key = (function, None, None)
                known = kernels.get(key)
        if known is None:
            intern = self.recorder.intern
            known = KernelVariant(
                self.recorder.next_id(),
                parent,
                site,
                function,
                inputs,
                intern(texts()),
                intern(output),
            )
            self.recorder.add_kernel(known)
            kernels[key] = known
        elif key[1] is None:
            known.inputs = widen_all(known.inputs, inputs)
            known.output = widen(known.output, output)
        known.count += 1
        return known

    # Module calls

    @leaving_surely
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
        site.called = variant
        record.calls[0] += 1
        site.calls += 1
        if site.calls in LOOKS_AGAIN and not activation.in_torch:
            self._look_again(frame, site)
        call: LiveCall | None = variant.idle
        if call is None:
            call = LiveCall(variant, record.special)
        else:
            variant.idle = None
        call.module = module
        self.stack.append(call)
        return call

    def begins_anew(self, module: Module, frame: FrameType) -> bool:
        """Whether a module that is no part of another is called once more from the same place.

        Others belong to the same step, as a discriminator does, or a decoder that is called apart.
        """
        activation = self.locate(frame)
        site = activation.site_at(frame.f_lasti)
        if activation.module is not None or site is None or site.modules is None:
            return False
        record = site.modules.get(id(module))
        return record is not None and record.last is not None and record.reference() is module

    def trampoline_of(self, site: Site, frame: FrameType, function: Any) -> Any:
        """What makes the calls from a site; looks at the variables again on the way, at first.

        A call whose own shapes repeat may stand beside values whose shapes do not.
        """
        site.calls += 1
        if site.activation.in_torch:
            site.calls = LAST_LOOK
        elif site.calls in LOOKS_AGAIN:
            self._look_again(frame, site)
        is_last = site.calls >= LAST_LOOK
        return self.recorder.trampolines.give(site, frame, function, is_last)

    @leaving_surely
    def _look_again(self, frame: FrameType, site: Site) -> None:
        with DisableTorchFunction():
            note_locals(self, frame, site)
            note_callers(self, frame, site)

    @leaving_surely
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
            self.recorder.add_module(variant)
            record.wide = variant
        else:
            variant.inputs = widen_all(variant.inputs, inputs)
        return variant

    @leaving_surely
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
                    with DisableTorchFunction():
                        note_returned(self, call, result)
                    if variant.record.unfinished and call.module is not None:
                        self.quietly(self.recorder.book.finish, variant.record, call.module)
                else:
                    variant.output = widen(variant.output, output)
        finally:
            stack = self.stack
            if stack and stack[-1] is call:
                stack.pop()
                if call.frame is not None:
                    self.live.pop(call.frame, None)
                    call.frame = None
                call.module = call.looks = call.marks = None
                variant.idle = call
            elif any(each is call for each in stack):
                while stack[-1] is not call:
                    self._drop_innermost()
                self._drop_innermost()

    def leave_failed(self, call: LiveCall, error: BaseException) -> None:
        """Note that a module call raised; it is forgotten by ``unwind``."""
        variant = call.variant
        ending = describe_error(error)
        if ending[0] is not ERROR:
            if variant.output is None:
                variant.output = ending
        elif variant.error is None:
            variant.error = ending[1:]
            self.recorder.changed()

    def unwind(self, outer: LiveCall | None) -> None:
        """Forget the module calls within another one, or all: they are over."""
        if outer is None or any(each is outer for each in self.stack):
            while self.stack and self.stack[-1] is not outer:
                self._drop_innermost()

    def _drop_innermost(self) -> None:
        over = self.stack[-1]
        if over.frame is not None:
            self.live.pop(over.frame, None)
        del self.stack[-1]


def _lasting(function: Any) -> Any:
    """A key for a function: a bound method is created for each access, and holds its object."""
    if type(function) is MethodType:
        function = function.__func__
    try:
        hash(function)
    except BaseException as error:
        if is_asynchronous(error):
            raise
        return type(function)
    return function


def thread_name(thread: threading.Thread | None) -> str | None:
    """The name of this thread, unless it is the main one.

    ``current_thread`` would make one up for a thread that Python did not start, and keep it.
    """
    if thread is None:
        thread = threading._active.get(get_ident())  # type: ignore[attr-defined]
    if thread is None:
        return "unknown"
    return None if thread is threading.main_thread() else thread.name
