"""The threads that a recording watches: where its modes are on, and where they are off."""

from __future__ import annotations

import threading
from collections.abc import Callable
from threading import get_ident
from types import FrameType
from typing import TYPE_CHECKING, Final, cast

from shapetrace._asynchronous import surely
from shapetrace.recorder.asides import stay_out_of_region
from shapetrace.recorder.callsite import TORCH_DIRECTORY
from shapetrace.recorder.options import RecorderOptions
from shapetrace.recorder.rest import Rest
from shapetrace.recorder.stacks import (
    enter_dispatch_mode,
    enter_function_mode,
    has_function_mode,
    leave_dispatch_mode,
    leave_function_mode,
)
from shapetrace.recorder.stand_ins import remove_left_over_modes
from shapetrace.recorder.thread_state import ThreadState, thread_name
from shapetrace.recorder.watch_importlib_bootstrap import DispatchMode, FunctionMode, PassingMode

if TYPE_CHECKING:
    from shapetrace.recorder.session import Recorder


_HANDLERS: Final = frozenset(
    {FunctionMode.__torch_function__.__code__, DispatchMode.__torch_dispatch__.__code__}
)


class WatchedThreads:
    """Puts the modes on the stacks of threads, and takes them off again."""

    def __init__(self, options: RecorderOptions) -> None:
        self.options = options
        self.rest = Rest(options.settle_after)
        self.active = False
        self.states: dict[int, ThreadState] = {}
        """By the identity of the thread."""
        self._idle: list[ThreadState] = []
        self._state_class = ThreadState

    def adopt_thread(
        self, state: ThreadState | None, started: threading.Thread | None = None
    ) -> ThreadState:
        """Put the modes on this thread's stacks; it may be one that was just ``started``."""
        if started is not None:
            self.states.pop(get_ident(), None)  # of a thread before it with the same identity
        elif state is None:
            state = self.states.get(get_ident())
        if state is None:
            name = thread_name(started)
            try:
                # Reusing a finished thread's state keeps short-lived threads from adding up.
                state = self._idle.pop()
            except IndexError:
                state = self._state_class(cast("Recorder", self), name)
            state.thread = name
            self.states[get_ident()] = state
        if not state.entered:
            self.leave_modes(state)  # where an interrupt came while they were being entered
            state.function_mode = FunctionMode(state)
            enter_function_mode(state.function_mode)
            if self.options.level == "aten":
                state.dispatch_mode = DispatchMode(state)
                enter_dispatch_mode(state.dispatch_mode)
            remove_left_over_modes()
            state.entered = True
            stay_out_of_region(self, state)
        return state

    def release_thread(self, state: ThreadState, over: bool = False) -> None:
        """Take the modes off this thread again, unless it is one that stays watched."""
        if self.active and not over and state.stays and not self.rest.asleep:
            return
        self.leave_modes(state)
        if not state.stays or over:
            self.states.pop(get_ident(), None)
            state.stack.clear()
            state.live.clear()
            # It may be called twice, where it was left the first time.
            is_idle = any(each is state for each in self._idle)
            if self.active and len(self._idle) < 64 and not is_idle:
                state.stays = False
                self._idle.append(state)

    def leave_modes(self, state: ThreadState) -> None:
        """Take the modes off this thread's stacks."""
        if state.function_mode is not None:
            leave_function_mode(state.function_mode)
            # In the middle of a call, or of a backward pass, torch will put it back on the stack.
            state.function_mode.__class__ = PassingMode
        if state.dispatch_mode is not None:
            state.dispatch_mode.retire()
        state.function_mode = state.dispatch_mode = None
        state.entered = False

    def sort_modes(self) -> None:
        """Put our mode where it belongs on this thread's stack, after others have moved there."""
        state = self.states.get(get_ident())
        if state is not None and has_function_mode(state.function_mode):
            enter_function_mode(state.function_mode)

    def modes_again(self) -> Callable[[], None] | None:
        """Put the modes back on where a call of torch's took them off; returns how to undo it."""
        state = self.states.get(get_ident())
        if state is None or not state.entered or state.aside:
            return None
        mode = state.function_mode
        if has_function_mode(mode):
            enter_function_mode(mode)
            return None

        def undo() -> None:
            leave_function_mode(mode)

        try:
            enter_function_mode(mode)
        except BaseException:
            surely(undo)
            raise
        return undo

    def find_lost_modes(self, state: ThreadState, frame: FrameType) -> None:
        """Put the modes on again that torch lost, as an exception of a signal handler's came.

        It takes them off in more than one step: to call them, and to print a tensor. They are off
        for good reason while one of them is at work, and while code of torch's calls modules.
        """
        if has_function_mode(state.function_mode):
            return
        outer: FrameType | None = frame
        while outer is not None:
            code = outer.f_code
            if code in _HANDLERS or code.co_filename.startswith(TORCH_DIRECTORY):
                return
            outer = outer.f_back
        enter_function_mode(state.function_mode)
        if state.dispatch_mode is not None:
            enter_dispatch_mode(state.dispatch_mode)

    def step_aside(self, state: ThreadState) -> None:
        """Take the function mode off for a while."""
        state.aside += 1
        if state.aside == 1:
            leave_function_mode(state.function_mode)
            if state.dispatch_mode is not None:
                leave_dispatch_mode(state.dispatch_mode)

    def step_back(self, state: ThreadState, outer: int = 0) -> None:
        """Put the function mode on again, unless there are ``outer`` regions around this one."""
        state.aside = outer
        if outer == 0 and state.entered and self.active:
            enter_function_mode(state.function_mode)
            if state.dispatch_mode is not None:
                enter_dispatch_mode(state.dispatch_mode)
