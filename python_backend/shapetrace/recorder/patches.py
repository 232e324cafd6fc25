"""What is replaced in torch and threading while a recording runs, and put back after it.

Each stand-in asks here for the running recording, so one that somebody kept (a bound method, a
patch of torch.fx that was undone late) only passes its call on once the recording is over.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import Module

from shapetrace._errors import AlreadyTracingError
from shapetrace.recorder.arrival import when_imported
from shapetrace.recorder.callsite import BOUNDARY
from shapetrace.recorder.compiled import follow_compiled_regions, step_around_tracing
from shapetrace.recorder.watch_importlib_bootstrap import (
    Running,
    make_engine_run,
    make_inference_exit,
    make_module_call,
    make_thread_main,
)

if TYPE_CHECKING:
    from shapetrace.recorder.session import Recorder


class Patches(Running):
    """The stand-ins now in place."""

    def __init__(self) -> None:
        super().__init__()
        self.undo: list[Callable[[], None]] = []
        """How to put back what was there, last first."""
        self.watches_forks = False

    def replace(self, owner: Any, name: str, stand_in: Any) -> None:
        """Put a stand-in in the place of an attribute."""
        original = getattr(owner, name)
        own = name in vars(owner)
        setattr(owner, name, stand_in)

        def undo() -> None:
            if vars(owner).get(name) is not stand_in:
                return  # somebody put a patch on top, and ours only passes calls on from now on
            if own:
                setattr(owner, name, original)
            else:
                delattr(owner, name)

        self.undo.append(undo)


_patches = Patches()


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
    _patches.replace(Module, "__call__", module_call)
    _patches.replace(
        threading.Thread,
        "_bootstrap_inner",
        make_thread_main(threading.Thread._bootstrap_inner, _patches),  # type: ignore[attr-defined]
    )
    if hasattr(torch.autograd, "_engine_run_backward"):
        engine_run = make_engine_run(torch.autograd._engine_run_backward, _patches)
        _patches.replace(torch.autograd, "_engine_run_backward", engine_run)
    if recorder.options.level == "aten":
        inference = torch.inference_mode
        _patches.replace(inference, "__exit__", make_inference_exit(inference.__exit__))
    undo = _patches.undo
    undo.append(
        when_imported("torch._dynamo.eval_frame", lambda: follow_compiled_regions(_patches))
    )
    step_around_tracing(_patches)
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


def _after_fork_in_child() -> None:
    if _patches.recorder is not None:
        _patches.recorder.stop_in_child()


def _after_fork() -> None:
    if _patches.recorder is not None:
        _patches.recorder.note("forked process", "os.fork")
