"""Stepping around what torch compiles or traces itself, where being watched would change it."""

from __future__ import annotations

import dis
from collections.abc import Callable
from threading import get_ident
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Final

import torch

from shapetrace._dynamo import Bystander, hide_originals, show_originals
from shapetrace._exception_table import catching_everywhere
from shapetrace.recorder.asides import leave_region, stay_out_of_region
from shapetrace.recorder.tracebacks import clean
from shapetrace.recorder.watch_modules_importlib_bootstrap import call_aside

if TYPE_CHECKING:
    from shapetrace.recorder.patches import Patches
    from shapetrace.recorder.session import Recorder
    from shapetrace.recorder.thread_state import ThreadState

_TRACING_ENTRIES: Final = (
    (torch._C, "_create_function_from_trace"),
    (torch._C, "_create_function_from_trace_with_dict"),
    (torch._C, "_create_graph_by_tracing"),
    (torch._C.ScriptModule, "_create_method_from_trace"),
    (torch._C.ScriptModule, "_create_method_from_trace_with_dict"),
)
"""The functions in which ``torch.jit.trace`` and the ONNX exporter run the program's code."""


class CompiledRegions(Bystander):
    """Takes a recording's modes off where Dynamo's frame evaluation is on.

    Dynamo guards on the stack of function modes, so a region compiled under ours would be compiled
    again once we are gone.
    """

    def __init__(self, patches: Patches) -> None:
        self._patches = patches
        self._watched: CodeType = patches.module_call.__code__
        self._own = _plain_code(patches.original_call)
        self._regions: set[int] = set()

    def show(self) -> None:
        """Put the original module call back for a while."""
        self._patches.show_original_call()

    def hide(self) -> None:
        """Stand in for it again."""
        self._patches.hide_original_call()

    def original(self, value: object) -> object:
        """The original module call."""
        patches = self._patches
        return patches.original_call if value is patches.module_call else value

    def enter(self, thread: int) -> None:
        """Step aside, where this thread is watched.

        Where a class has a module call of its own, Dynamo guards on the code of the one that it
        passes on to. Putting the original one back would be a change to all classes of modules.
        """
        if not self._regions and self._own is not None:
            self._patches.module_call.__code__ = self._own
        self._regions.add(thread)
        recorder, state = self._here(thread)
        if recorder is None:
            return
        if state is not None and not state.in_region:
            if not state.aside:
                recorder.note("torch.compile region", "a compiled function")
            stay_out_of_region(recorder, state)
        if any(each.stack for key, each in list(recorder.states.items()) if key != thread):
            recorder.note("torch.compile region", "module calls of other threads meanwhile")

    def leave(self, thread: int) -> None:
        """Step back."""
        self._regions.discard(thread)
        if not self._regions:
            self._patches.module_call.__code__ = self._watched
        recorder, state = self._here(thread)
        if recorder is not None and state is not None:
            leave_region(recorder, state)

    def _here(self, thread: int) -> tuple[Recorder | None, ThreadState | None]:
        recorder = self._patches.recorder
        # Another thread's stack of modes cannot be reached from here.
        state = recorder.states.get(thread) if recorder and thread == get_ident() else None
        return recorder, state if state is not None and (state.entered or state.in_region) else None


def _plain_code(function: object) -> CodeType | None:
    """A function's code, if another function does the same with it."""
    if not isinstance(function, FunctionType) or function.__code__.co_freevars:
        return None
    code = function.__code__
    uses_globals = any("GLOBAL" in each.opname for each in dis.get_instructions(code))
    return None if uses_globals or function.__defaults__ or function.__kwdefaults__ else code


def _here(patches: Patches) -> tuple[Recorder | None, ThreadState | None]:
    recorder = patches.recorder
    state = None if recorder is None else recorder.states.get(get_ident())
    return recorder, state if state is not None and state.entered else None


def step_around_tracing(patches: Patches) -> None:
    """Take the modes off while torch.jit traces.

    Sizes are tensors then, so describing one would warn and leave operators in the traced graph.
    """
    for owner, name in _TRACING_ENTRIES:
        if hasattr(owner, name):
            patches.replace(owner, name, _make_tracing_entry(getattr(owner, name), patches))


def _make_tracing_entry(original: Any, patches: Patches) -> Callable[..., Any]:
    @catching_everywhere
    def entry(*args: Any, **kwargs: Any) -> Any:
        try:
            recorder, state = _here(patches)
            if recorder is None or state is None:
                return original(*args, **kwargs)
            recorder.note("torch.jit tracing", "torch.jit.trace")
            show_originals()  # the graph stores the Python stack of each of its operators
            try:
                return call_aside(recorder, state, original, *args, **kwargs)
            finally:
                hide_originals()
        except BaseException as error:
            clean(error)
            raise

    return entry
