"""What is replaced in torch and threading while a recording runs, and put back after it.

Each stand-in asks here for the running recording, so one that somebody kept (a bound method, a patch
of torch.fx that was undone late) only passes its call on once the recording is over.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from threading import get_ident
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import Module

from shapetrace._errors import AlreadyTracingError
from shapetrace.recorder.arrival import when_imported
from shapetrace.recorder.callsite import BOUNDARY
from shapetrace.recorder.watch_importlib_bootstrap import (
    Running,
    make_engine_run,
    make_module_call,
    make_thread_main,
)

if TYPE_CHECKING:
    from shapetrace.recorder.session import Recorder


class _Patches(Running):
    """The stand-ins now in place."""

    def __init__(self) -> None:
        super().__init__()
        self.undo: list[Callable[[], None]] = []
        self.watches_forks = False


_patches = _Patches()


def install(recorder: Recorder) -> None:
    """Put the stand-ins in place for a recording."""
    if _patches.recorder is not None:
        raise AlreadyTracingError(
            "a recording is running already; leave it before starting another one"
        )
    _patches.recorder = recorder
    module_call = make_module_call(Module.__call__, _patches)
    recorder.boundary = module_call.__code__
    recorder.kinds.mark(module_call.__code__, BOUNDARY)
    _replace(Module, "__call__", module_call)
    _replace(
        threading.Thread,
        "_bootstrap_inner",
        make_thread_main(threading.Thread._bootstrap_inner, _patches),  # type: ignore[attr-defined]
    )
    if hasattr(torch.autograd, "_engine_run_backward"):
        engine_run = make_engine_run(torch.autograd._engine_run_backward, _patches)
        _replace(torch.autograd, "_engine_run_backward", engine_run)
    _patches.undo.append(when_imported("torch._dynamo.eval_frame", _follow_compiled_regions))
    if not _patches.watches_forks and hasattr(os, "register_at_fork"):
        _patches.watches_forks = True
        os.register_at_fork(after_in_child=_after_fork_in_child, after_in_parent=_after_fork)


def remove(recorder: Recorder) -> None:
    """Put back what was there before."""
    if _patches.recorder is not recorder:
        return
    _patches.recorder = None
    while _patches.undo:
        _patches.undo.pop()()


def _replace(owner: Any, name: str, stand_in: Any) -> None:
    original = getattr(owner, name)
    own = name in vars(owner)
    setattr(owner, name, stand_in)

    def undo() -> None:
        if vars(owner).get(name) is not stand_in:
            return  # somebody put a patch of theirs on top, and ours only passes calls on now
        if own:
            setattr(owner, name, original)
        else:
            delattr(owner, name)

    _patches.undo.append(undo)


def _after_fork_in_child() -> None:
    if _patches.recorder is not None:
        _patches.recorder.stop_in_child()


def _after_fork() -> None:
    if _patches.recorder is not None:
        _patches.recorder.note("forked process", "os.fork")


def _follow_compiled_regions() -> None:
    """Take the modes off while Dynamo's frame evaluation is on.

    Dynamo guards on the stack of function modes, so a region compiled under ours would be compiled
    again once we are gone.
    """
    recorder = _patches.recorder
    evaluation = sys.modules.get("torch._dynamo.eval_frame")
    if recorder is None or not hasattr(evaluation, "_maybe_set_eval_frame"):
        return
    skip_code = getattr(torch._C._dynamo.eval_frame, "skip_code", None)
    module_call = vars(Module)["__call__"]
    if skip_code is not None:
        # Dynamo passes over torch's own module call; ours must be no more visible to it.
        skip_code(module_call.__code__)
    original = evaluation._maybe_set_eval_frame

    def _maybe_set_eval_frame(callback: Any) -> Any:
        running_now = _patches.recorder
        state = None if running_now is None else running_now.states.get(get_ident())
        if running_now is not None and state is not None and state.entered:
            if callback is not None and callback is not False:
                if not state.in_compiled:
                    state.in_compiled = True
                    if not state.aside:
                        running_now.note("torch.compile region", "a compiled function")
                    running_now.step_aside(state)
            elif state.in_compiled:
                state.in_compiled = False
                running_now.step_back(state)
        return original(callback)

    _replace(evaluation, "_maybe_set_eval_frame", _maybe_set_eval_frame)
