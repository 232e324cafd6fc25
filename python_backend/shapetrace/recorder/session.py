"""One recording of a program: starts and stops it, and keeps what was seen."""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from collections.abc import Callable
from threading import get_ident
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import Module

from shapetrace._asynchronous import is_asynchronous, surely
from shapetrace._exception_table import leaving_surely
from shapetrace._locks import holding
from shapetrace.events.model import Trace
from shapetrace.recorder import patches
from shapetrace.recorder.assignments import Assignments
from shapetrace.recorder.call_finder import LiveCall
from shapetrace.recorder.callsite import Activation, CodeKinds, NotTheProgram, Site
from shapetrace.recorder.debuggers import RECORDER_METHODS, hide_methods
from shapetrace.recorder.describe import Raw
from shapetrace.recorder.joining import can_join, running_forwards
from shapetrace.recorder.kinds import quiet_functions
from shapetrace.recorder.modules import ModuleBook, is_compiled, owns_parameters
from shapetrace.recorder.options import RecorderOptions
from shapetrace.recorder.ranks import ThisProcess
from shapetrace.recorder.records import KernelVariant, ModuleVariant, OpVariant, VariableNote
from shapetrace.recorder.rest import signature_of
from shapetrace.recorder.snapshot import take_snapshot
from shapetrace.recorder.stand_ins import remove_left_over_modes
from shapetrace.recorder.thread_state import ThreadState
from shapetrace.recorder.tracebacks import LastWord
from shapetrace.recorder.trampolines import Trampolines
from shapetrace.recorder.turns import Turns
from shapetrace.recorder.watch_importlib_bootstrap import (
    PassingMode,
    call_plainly,
)
from shapetrace.recorder.watched_threads import WatchedThreads
from shapetrace.recorder.worth import Worth

if TYPE_CHECKING:
    from shapetrace.recorder.values.fingerprints import Fingerprints

MOST_INTERNED = 1 << 16
MOST_VARIABLE_SHAPES = 16  # different values of one variable at one place that are kept


class Recorder(WatchedThreads):
    """Records what one program does with torch from ``start`` to ``stop``."""

    def __init__(
        self,
        options: RecorderOptions,
        model: Module | None = None,
        on_complete: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(options)
        self.kinds = CodeKinds(options.debugger)
        self.boundary: CodeType | None = None
        """The code of our module call."""
        self.trampolines = Trampolines(call_plainly, options.hide_code)
        self.quiet = quiet_functions()
        self.book = ModuleBook(model)
        self.worth = Worth()
        self.turns = Turns()
        self.ops: list[OpVariant] = []
        self.kernels: list[KernelVariant] = []
        self.modules: list[ModuleVariant] = []
        self.variables: list[VariableNote] = []
        self.notes: dict[tuple[str, str], int] = {}
        """Code that was not recorded, by reason and place."""
        self.running_before: frozenset[tuple[int, int]] = frozenset()
        """Frames of forwards that ran when the recording began, and of which code."""
        self.passes_seen = 0
        self.started_at = time.time()
        self.active = self.complete = False
        self._on_complete = on_complete
        self._on_change = options.on_change
        self._numbers = itertools.count(1)
        self.last_word = LastWord()
        self._interned: dict[Any, Any] = {}
        self._assignments: dict[int, tuple[CodeType, Assignments]] = {}
        self._variable_shapes: dict[Any, set[Raw]] = {}
        self._loose_kernels: dict[int, tuple[Site, dict[Any, KernelVariant]]] = {}
        self._changes = 0
        self._changes_before_pass = 0
        self._faults = 0
        self.process = ThisProcess()
        self._pass_signature: Any = None
        self._counts_before_last_pass: list[tuple[OpVariant | ModuleVariant, int]] = []
        self._lock = threading.Lock()
        self.fingerprints: Fingerprints | None = None
        """Values that calls returned, if they were requested."""
        if options.fingerprint:
            self._look_at_values()
        hide_methods(self, RECORDER_METHODS, options.unseen)

    def _look_at_values(self) -> None:
        # Imported on first use: others must not pay for it.
        from shapetrace.recorder.values.fingerprints import Fingerprints
        from shapetrace.recorder.values.looking_state import LookingState

        self.fingerprints = Fingerprints()
        self._state_class = LookingState

    # Beginning and end

    def start(self, frame: FrameType | None = None) -> None:
        """Begin to record on this thread, and on others as they are started or call modules."""
        try:
            if not self._begin():
                return
            state = self.adopt_thread(None)
            state.stays = True
            if frame is not None:
                here = state.locate(frame)
                # Without a caller: who runs the one that records (a notebook, a test) is of no
                # interest.
                state.live[id(frame)] = Activation(here.code, None, None, here.in_torch)
        except BaseException:
            self.stop()
            raise

    def start_beside(self) -> None:
        """Begin to record from a thread that is not the program's.

        Module calls are watched from now on, and the main thread once it has been joined.
        """
        self.running_before = running_forwards(self.kinds)
        self._begin()

    def join(self, frame: FrameType) -> bool:
        """Watch this thread, which is running in a frame; False where it has to be asked later."""
        if self.active and can_join(frame, self.kinds):
            self.adopt_thread(None).stays = True
            return True
        return False

    @leaving_surely
    def _begin(self) -> bool:
        with holding(self._lock):
            if self.active:
                return False
            patches.install(self)
            self.active = True
            self.started_at = time.time()
            return True

    def stop(self) -> None:
        """End the recording and leave nothing behind. May be called again, and on any thread."""
        surely(self._stop)

    @leaving_surely
    def _stop(self) -> None:
        with holding(self._lock):
            self.active = False
            patches.remove(self)
        own = self.states.get(get_ident())
        for state in [*self.states.values(), *self._idle]:
            if state is own:
                self.leave_modes(state)
            elif state.function_mode is not None:
                # Another thread's stack cannot be reached from here; its mode turns harmless.
                state.function_mode.__class__ = PassingMode
                if state.dispatch_mode is not None:
                    state.dispatch_mode.retired = state.dispatch_mode.quiet = True
            state.stack.clear()
            state.live.clear()
        remove_left_over_modes()
        self.states.clear()
        self._idle.clear()
        self.trampolines.forget()
        if self.fingerprints is not None:
            self.fingerprints.stop()

    def stop_in_child(self) -> None:
        """Let a forked child go on without recording."""
        self._lock = threading.Lock()
        if self.fingerprints is not None:
            self.fingerprints.remake_lock()
        self.complete = True
        self.stop()

    def snapshot(self) -> Trace:
        """The recording so far, as events."""
        return take_snapshot(self)

    def counters(self) -> tuple[int, int]:
        """How many calls and how many forward passes were seen so far."""
        seen = sum(variant.count for variant in list(self.ops))
        return seen, self.passes_seen

    # Passes

    def begin_pass(
        self, state: ThreadState, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> bool:
        """Called before an outermost module call; False when the recording has just ended."""
        state.in_pass = self._is_a_pass(state)
        bottom = torch._C._len_torch_function_stack() and torch._C._get_function_stack_at(0)
        if bottom is not state.function_mode:
            self.find_lost_modes(state, sys._getframe(2))
        passes = self.options.passes
        if (
            passes is not None
            and self.passes_seen >= passes
            and state.in_pass
            and owns_parameters(module)
            and state.begins_anew(module, state.visible(sys._getframe(2)))
        ):
            for variant, count in self._counts_before_last_pass:
                variant.count = count
            self._finish()
            return False
        before = self.options.before_pass
        if before is not None and state.in_pass and owns_parameters(module):
            before(module)
        if self.rest.needs_signatures and state.evaluation is None:
            self._pass_signature = signature_of(module, args, kwargs)
            self._changes_before_pass = self._changes
        return True

    def _is_a_pass(self, state: ThreadState) -> bool:
        """Whether an outermost call is neither a part of a backward pass nor of another's forward.

        Checkpoints are computed again in backward passes, and replicas run in threads. What is
        evaluated for the user is none of the program's either.
        """
        if state.evaluation is not None or torch._C._current_graph_task_id() != -1:
            return False
        return not any(each.stack for each in list(self.states.values()) if each is not state)

    def after_outermost(self, state: ThreadState, call: LiveCall, failed: bool = False) -> None:
        """Called after an outermost module call."""
        variant = call.variant
        if not self.active:
            remove_left_over_modes()
        if not (state.in_pass and variant.record.parameters and self.active):
            return
        if variant.parent is not None:
            return  # of a module whose forward was called directly
        # Once for a call, also where this is left halfway and called again.
        state.in_pass = False
        self.passes_seen += 1
        try:
            new = self._changes != self._changes_before_pass
            if self.rest.after_pass(new, self._pass_signature, self.passes_seen):
                self.leave_modes(state)
        finally:
            surely(self._finish_after_pass, call, failed)

    def _finish_after_pass(self, call: LiveCall, failed: bool) -> None:
        passes = self.options.passes
        if passes is None or self.passes_seen < passes:
            return
        if not self.options.through_step:
            self._finish(silent=failed)
        elif self.passes_seen == passes:
            # What led to this pass leads to the next one too, which is not to be recorded.
            first = call.variant.id
            calls: list[OpVariant | ModuleVariant] = [*self.ops, *self.modules]
            self._counts_before_last_pass = [(it, it.count) for it in calls if it.id < first]

    def wants_to_look(
        self,
        state: ThreadState | None,
        module: Module,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> bool:
        """Whether an outermost call on a thread whose modes are off is to be recorded."""
        if not self.active or is_compiled(module):
            return False
        if not self.rest.asleep:
            return True
        return self.rest.wants_to_look(signature_of(module, args, kwargs))

    def wake(self) -> None:
        """Look at everything again from the next pass on."""
        self.rest.wake()

    def stay_awake(self, stay: bool) -> None:
        """Look at every pass from the next one on, or no longer insist on it."""
        if stay and self.rest.asleep:
            self.rest.wake()
        self.rest.stays_awake = stay

    def _finish(self, silent: bool = False) -> None:
        self.complete = True
        if silent:
            self._on_complete = None
        surely(self._end)

    def _end(self) -> None:
        self.stop()
        tell, self._on_complete = self._on_complete, None
        if tell is not None:
            tell()

    # Stepping aside

    def is_stepped_aside(
        self, state: ThreadState, call: LiveCall, module: Module, args: Any, kwargs: Any
    ) -> bool:
        """Whether watching would change a module call."""
        reason = None
        fused = call.variant.record.fused
        if is_compiled(module):
            reason = "torch.compile region"
        elif fused is not None and not self.options.expand_fused and fused(module, args, kwargs):
            reason = "fused fast path"
        if reason is not None:
            record = call.variant.record
            call.variant.note = reason
            self.note(reason, record.path or record.class_name)
        return reason is not None

    # What was seen

    def next_id(self) -> int:
        """A number for a new op or module call; a smaller one was seen earlier."""
        return next(self._numbers)

    def changed(self) -> None:
        """Note that something new was seen."""
        self._changes += 1
        if self._on_change is not None:
            self._on_change()

    def add_op(self, variant: OpVariant) -> None:
        """Keep a new op variant."""
        self.ops.append(variant)
        self.changed()

    def add_kernel(self, variant: KernelVariant) -> None:
        """Keep a new kernel variant."""
        self.kernels.append(variant)
        self.changed()

    def add_module(self, variant: ModuleVariant) -> None:
        """Keep a new module variant."""
        self.modules.append(variant)
        self.changed()

    def note(self, reason: str, where: str) -> None:
        """Count code that was not recorded."""
        key = (reason, where)
        self.notes[key] = self.notes.get(key, 0) + 1

    def note_variable(
        self, activation: Activation, name: str, offset: int | None, raw: Raw
    ) -> None:
        """Keep a value of a variable, once, unless a recorded call has it anyway."""
        key = (id(activation.module), id(activation.code), name, offset)
        shapes = self._variable_shapes.get(key)
        if shapes is not None and (raw in shapes or len(shapes) >= MOST_VARIABLE_SHAPES):
            return
        if offset is not None and self.worth.is_told(activation, offset):
            return
        if shapes is None:
            shapes = self._variable_shapes[key] = set()
        raw = self.intern(raw)
        shapes.add(raw)
        self.variables.append(VariableNote(activation, name, offset, raw))

    def kernels_of(self, site: Site) -> dict[Any, KernelVariant]:
        """The kernels that ran at a site without a recorded op above them."""
        return self._loose_kernels.setdefault(id(site), (site, {}))[1]

    def assignments_of(self, code: CodeType) -> Assignments:
        """The stores of a function, read once."""
        known = self._assignments.get(id(code))
        if known is None:
            known = self._assignments[id(code)] = (code, Assignments(code))
        return known[1]

    def intern(self, value: Any) -> Any:
        """An equal value that is shared by all who have one."""
        if len(self._interned) > MOST_INTERNED:
            self._interned.clear()
        try:
            return self._interned.setdefault(value, value)
        except TypeError:  # symbolic sizes cannot be hashed
            return value

    def swallows(self, error: BaseException) -> bool:
        """Note a fault of ours; False for an exception of the program's own, which is to go on."""
        if is_asynchronous(error):
            return False
        try:
            if not isinstance(error, RecursionError):
                self.fault(error)
        except RecursionError:
            pass  # no room to note it, nor would there be for the call itself
        return True

    def fault(self, error: BaseException) -> None:
        """Note a fault of ours. The program must not notice."""
        if isinstance(error, NotTheProgram):
            return
        self._faults += 1
        try:
            text = f"{type(error).__name__}: {error}"[:300]
        except BaseException as another:
            if is_asynchronous(another):
                raise
            text = type(error).__name__
        self.note("fault in Shapetrace", text)
        if os.environ.get("SHAPETRACE_DEBUG"):
            sys.excepthook(type(error), error, error.__traceback__)
