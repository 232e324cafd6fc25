"""Replacements in torch and threading while a recording runs, and their removal.

Each stand-in asks here for the running recording, so one that somebody kept (a bound method, a
patch of torch.fx that was undone late) only passes its call on once the recording is over.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import Module

from shapetrace._asynchronous import surely
from shapetrace._dynamo import stand_aside, stand_by
from shapetrace._errors import AlreadyTracingError
from shapetrace.recorder.callsite import BOUNDARY
from shapetrace.recorder.compiled import CompiledRegions, step_around_tracing
from shapetrace.recorder.stand_ins import (
    SymbolicSizes,
    make_inference_exit,
    make_set_default_device,
)
from shapetrace.recorder.watch_importlib_bootstrap import Running, make_as_subclass
from shapetrace.recorder.watch_modules_importlib_bootstrap import make_module_call
from shapetrace.recorder.watch_threads_importlib_bootstrap import make_engine_run, make_thread_main

if TYPE_CHECKING:
    from shapetrace.recorder.session import Recorder


class Patches(Running):
    """The installed stand-ins."""

    def __init__(self) -> None:
        super().__init__()
        self.owner: Recorder | None = None
        """The recording that they were put in place for, also once it is over."""
        self.undo: list[Callable[[], None]] = []
        """How to put back what was there, last first."""
        self.module_call: Any = None
        self.original_call: Any = None

    def show_original_call(self) -> None:
        """Put back the original module call for a while."""
        if vars(Module)["__call__"] is self.module_call:
            # To a checker of types, a method that is put in another's place is a mistake.
            Module.__call__ = self.original_call  # type: ignore[method-assign]

    def hide_original_call(self) -> None:
        """Stand in for it again, if a recording is still running."""
        if self.recorder is not None and vars(Module)["__call__"] is self.original_call:
            # As above.
            Module.__call__ = self.module_call  # type: ignore[method-assign]

    def replace(self, owner: Any, name: str, stand_in: Any) -> None:
        """Replace an attribute by a stand-in."""
        original = getattr(owner, name)
        own = name in vars(owner)

        def undo() -> None:
            if vars(owner).get(name) is not stand_in:
                return  # another tool put a patch on top, and ours only passes calls on from now on
            if own:
                setattr(owner, name, original)
            else:
                delattr(owner, name)

        self.undo.append(undo)
        setattr(owner, name, stand_in)


_patches = Patches()
"""Those of the recording that is running, or that ran last."""
_watches_forks = False


def install(recorder: Recorder) -> None:
    """Install the stand-ins for a recording."""
    global _patches
    if _patches.recorder is not None:
        raise AlreadyTracingError(
            "a recording is running already (of `shapetrace run`, a debug session, or another "
            "shapetrace.trace); leave it before starting another one"
        )
    # A new one each time: a kept stand-in of an earlier recording takes no part in this one.
    _patches = Patches()
    _patches.owner = _patches.recorder = recorder
    try:
        recorder.process.look()
        _install(recorder)
    except BaseException:
        surely(remove, recorder)
        raise


def _install(recorder: Recorder) -> None:
    global _watches_forks
    _patches.original_call = Module.__call__
    module_call = make_module_call(_patches.original_call, _patches)
    _patches.module_call = module_call
    recorder.boundary = module_call.__code__
    recorder.kinds.mark(module_call.__code__, BOUNDARY)
    _patches.replace(Module, "__call__", module_call)
    _patches.replace(
        threading.Thread,
        "_bootstrap_inner",
        # What is private to Python's threads is not in its types.
        make_thread_main(threading.Thread._bootstrap_inner, _patches),  # type: ignore[attr-defined]
    )
    if hasattr(torch.autograd, "_engine_run_backward"):
        engine_run = make_engine_run(torch.autograd._engine_run_backward, _patches)
        _patches.replace(torch.autograd, "_engine_run_backward", engine_run)
    sizes = SymbolicSizes()
    _patches.undo.append(sizes.forget)
    _patches.replace(FakeTensorMode, "__enter__", sizes.make_enter(FakeTensorMode.__enter__))
    _patches.replace(FakeTensorMode, "__exit__", sizes.make_exit(FakeTensorMode.__exit__))
    set_default_device = make_set_default_device(torch.set_default_device, _patches)
    _patches.replace(torch, "set_default_device", set_default_device)
    if recorder.options.level == "aten":
        _follow_inference_mode()
        if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 6):
            as_subclass = make_as_subclass(torch.Tensor.as_subclass)
            _patches.replace(torch.Tensor, "as_subclass", as_subclass)
    regions = CompiledRegions(_patches)
    _patches.undo.append(functools.partial(stand_aside, regions))
    stand_by(regions)
    step_around_tracing(_patches)
    if not _watches_forks and hasattr(os, "register_at_fork"):
        _watches_forks = True
        os.register_at_fork(after_in_child=_after_fork_in_child, after_in_parent=_after_fork)


def _follow_inference_mode() -> None:
    """Have what must not be left in the middle of inference mode left at its end."""
    inference: Any = torch.inference_mode
    original = inference.__exit__

    def put_back() -> None:
        recording = _patches.recorder is not None
        if inference.__exit__ is stand_in and not recording:
            inference.__exit__ = original

    def undo() -> None:
        if not torch.is_inference_mode_enabled():
            put_back()  # or else it does so itself at the end

    stand_in = make_inference_exit(original, put_back)
    _patches.undo.append(undo)
    inference.__exit__ = stand_in


def remove(recorder: Recorder) -> None:
    """Put back what was there before. May be called again, where it was left halfway."""
    if _patches.owner is not recorder:
        return
    _patches.recorder = None
    recorder.process.look()
    recorder.last_word.forget()
    while _patches.undo:
        _patches.undo[-1]()
        del _patches.undo[-1]


def _after_fork_in_child() -> None:
    recorder = _patches.recorder
    # It may be one that an earlier fork callback started in this child.
    if recorder is not None and recorder.process.id != os.getpid():
        recorder.stop_in_child()


def _after_fork() -> None:
    recorder = _patches.recorder
    if recorder is not None and not recorder.options.follows_forks:
        recorder.note("forked process", "os.fork")
