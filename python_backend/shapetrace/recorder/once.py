"""Whether a function runs only once during a module call, so that what was seen in it still counts.

Frames cannot be told apart for certain: a new one may have the identity of one that is gone. But
``forward`` runs once for a module call, and so does a function that is called from there, or from
another such function, by an instruction that runs at most once and calls just this function.
"""

from __future__ import annotations

import inspect
from types import CodeType, FrameType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from torch.nn import Module

from shapetrace.recorder.callsite import Activation
from shapetrace.recorder.frames import forget_locals, frame_at, read_locals

if TYPE_CHECKING:
    from shapetrace.recorder.assignments import Assignments
    from shapetrace.recorder.call_finder import LiveCall
    from shapetrace.recorder.thread_state import ThreadState


def runs_once(state: ThreadState, call: LiveCall, activation: Activation, frame: FrameType) -> bool:
    """Whether a frame is the only one of its activation during a module call."""
    while True:
        caller = activation.caller
        if caller is None or call.module is None:
            return False
        if caller is call.variant.site and activation.module is call.variant:
            return activation.code is forward_code(call.module)  # or else it is a hook
        outer = frame_at(caller, frame)
        if outer is None:
            return False
        assignments = state.recorder.assignments_of(outer.f_code)
        if assignments.repeats(caller.offset) or not _calls(assignments, outer, activation.code):
            return False
        activation, frame = caller.activation, outer
        if call.looks and call.looks.get(activation) is not None:
            return True  # as was found before: this is its only frame


def forward_code(module: Module) -> CodeType | None:
    """The code of what a module's call calls as its ``forward``, where that is a function."""
    of_class = inspect.getattr_static(type(module), "forward", None)
    return _code_of(module.__dict__.get("forward", of_class))


def _code_of(function: Any) -> CodeType | None:
    if type(function) is MethodType:
        function = function.__func__
    return function.__code__ if type(function) is FunctionType else None


def _calls(assignments: Assignments, frame: FrameType, code: CodeType) -> bool:
    """Whether a frame is at a call of the function that has ``code``, and not of one around it."""
    called = assignments.called_at(frame.f_lasti)
    if called is None:
        return False
    if called.is_global:
        return _code_of(frame.f_globals.get(called.name)) is code
    values = read_locals(frame)
    try:
        return _code_of(values.get(called.name)) is code
    finally:
        forget_locals(frame, values)
