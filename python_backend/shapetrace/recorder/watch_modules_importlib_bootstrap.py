"""The frames of ours that stand around module calls.

The file is named, and its frames take themselves out of tracebacks, for the same reasons as in
``watch_importlib_bootstrap``.
"""

from __future__ import annotations

from collections.abc import Callable
from sys import _getframe
from threading import get_ident
from types import FunctionType
from typing import TYPE_CHECKING, Any

from torch import compiler
from torch.compiler import is_dynamo_compiling
from torch.nn import Module

from shapetrace._asynchronous import surely
from shapetrace._dynamo import in_region
from shapetrace._exception_table import catching_everywhere, covering_jumps
from shapetrace.recorder.callsite import NotTheProgram
from shapetrace.recorder.thread_state import ThreadState
from shapetrace.recorder.tracebacks import take_out_our_frames
from shapetrace.recorder.watch_importlib_bootstrap import Running, put_back

if TYPE_CHECKING:
    from shapetrace.recorder.session import Recorder


original: Any = None
"""In the globals of a stand-in: what it stands in for, which recording runs, and itself."""
running = Running()
watched: Any = None


@catching_everywhere
def _module_call(module: Module, /, *args: Any, **kwargs: Any) -> Any:
    """Stands in for ``nn.Module.__call__``; what it stands in for is among its own globals."""
    try:
        if is_dynamo_compiling() or compiler._is_compiling_flag:
            return original(module, *args, **kwargs)
        recorder = running.recorder
        if recorder is None:
            return original(module, *args, **kwargs)
        state = recorder.states.get(get_ident())
        if state is None or not state.entered:
            if state is None or not state.resting:
                return _call_from_outside(recorder, state, watched, original, module, args, kwargs)
            return original(module, *args, **kwargs)
        if state.aside:
            return original(module, *args, **kwargs)
        stack = state.stack
        outer = stack[-1] if stack else None
        call = None
        aside = False
        try:
            try:
                if outer is not None or recorder.begin_pass(state, module, args, kwargs):
                    call = state.enter(module, args, kwargs, _getframe(1))
                    if call.special or module._compiled_call_impl is not None:
                        aside = recorder.is_stepped_aside(state, call, module, args, kwargs)
            except BaseException as error:
                if not recorder.swallows(error):
                    raise
                aside = isinstance(error, NotTheProgram)
            if aside:
                result = call_aside(recorder, state, original, module, *args, **kwargs)
            else:
                result = original(module, *args, **kwargs)
            if call is not None:
                try:
                    state.leave(call, result)
                    if not stack:
                        recorder.after_outermost(state, call)
                except BaseException as error:
                    if not recorder.swallows(error):
                        raise
            return result
        except BaseException as error:
            try:
                _leave_failed(recorder, state, outer, call, error)
            except RecursionError:
                pass  # as below
            raise
    except BaseException as error:
        try:
            take_out_our_frames(error)
        except RecursionError:
            pass  # no room; a module call further out cleans up
        raise


def make_module_call(original: Callable[..., Any], running: Running) -> Any:
    """A stand-in for ``nn.Module.__call__`` that tells the recorder of each call.

    It is no closure, so that it can have the code that it stands in for, for a while.
    """
    own = {**globals(), "original": original, "running": running}
    stand_in = FunctionType(_module_call.__code__, own, "__call__")
    own["watched"] = stand_in
    # By its name Dynamo knows the module call, of which it compiles only what that calls.
    stand_in.__name__ = getattr(original, "__name__", "__call__")
    stand_in.__qualname__ = getattr(original, "__qualname__", "Module.__call__")
    stand_in.__module__ = original.__module__
    return stand_in


def call_aside(
    recorder: Recorder, state: ThreadState, function: Any, /, *args: Any, **kwargs: Any
) -> Any:
    """Make a call that watching would change, with the modes off."""
    outer = state.aside
    try:
        try:
            recorder.step_aside(state)
        except BaseException as error:
            if not recorder.swallows(error):
                raise
        return function(*args, **kwargs)
    finally:
        put_back(recorder, recorder.step_back, state, outer)


def _call_from_outside(
    recorder: Recorder,
    state: ThreadState | None,
    watched: Any,
    original: Any,
    module: Any,
    args: Any,
    kwargs: Any,
) -> Any:
    """An outermost module call on a thread whose modes are off: a new thread, or one at rest."""
    looking = False
    resting = 0 if state is None else state.resting
    try:
        try:
            looking = not in_region() and recorder.wants_to_look(state, module, args, kwargs)
            if looking:
                state = recorder.adopt_thread(state)
        except BaseException as error:
            if not recorder.swallows(error):
                raise
            looking = False
        if looking:
            return watched(module, *args, **kwargs)
        if state is not None:
            state.resting = resting + 1
        return original(module, *args, **kwargs)
    finally:
        if looking:
            put_back(recorder, recorder.release_thread, state)
        elif state is not None:
            state.resting = resting


@covering_jumps
def _leave_failed(
    recorder: Recorder, state: ThreadState, outer: Any, call: Any, error: BaseException
) -> None:
    """Leave a module call that did not return, wherever it had got to."""
    try:
        try:
            stack = state.stack
            if call is None and stack and stack[-1] is not outer:
                call = stack[-1]  # it was entered, and could not say so any more
            if call is not None and any(each is call for each in stack):
                state.leave_failed(call, error)
        finally:
            surely(state.unwind, outer)
        if call is not None and not state.stack:
            recorder.after_outermost(state, call, failed=True)
    except BaseException as fault:
        if not recorder.swallows(fault):
            raise
