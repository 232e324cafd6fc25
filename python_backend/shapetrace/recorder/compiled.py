"""Stepping around what torch compiles or traces itself, where being watched would change it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from threading import get_ident
from types import CodeType, FrameType, FunctionType
from typing import TYPE_CHECKING, Any, Final

import torch

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
"""What ``torch.jit.trace`` and the ONNX exporter run the program's code in."""


def follow_compiled_regions(patches: Patches) -> None:
    """Take the modes off while Dynamo's frame evaluation is on.

    Dynamo guards on the stack of function modes, so a region compiled under ours would be compiled
    again once we are gone.
    """
    evaluation: Any = sys.modules.get("torch._dynamo.eval_frame")
    if patches.recorder is None or not hasattr(evaluation, "_maybe_set_eval_frame"):
        return
    _hide_our_code()
    _show_the_original_call(patches)
    original_set = evaluation.set_eval_frame
    original_maybe_set = evaluation._maybe_set_eval_frame

    def set_eval_frame(callback: Any) -> Any:
        # A compiled function begins with this, before it notes which dispatch keys are on.
        frame = sys._getframe(1)
        recorder, state = _here(patches)
        begins = callback is None and frame.f_code.co_name == "compile_wrapper"
        if recorder is not None and state is not None and begins and state.compiled_by is None:
            _enter_region(recorder, state, id(frame))
        return original_set(callback)

    def _maybe_set_eval_frame(callback: Any) -> Any:
        recorder, state = _here(patches)
        if recorder is not None and state is not None:
            owner = _owner_of(sys._getframe(1))
            if callback is not None and callback is not False:
                if state.compiled_by is None:
                    _enter_region(recorder, state, owner)
            elif state.compiled_by == owner:
                state.compiled_by = None
                recorder.step_back(state)
        return original_maybe_set(callback)

    patches.replace(evaluation, "set_eval_frame", set_eval_frame)
    patches.replace(evaluation, "_maybe_set_eval_frame", _maybe_set_eval_frame)


def _enter_region(recorder: Recorder, state: ThreadState, owner: int) -> None:
    state.compiled_by = owner
    if not state.aside:
        recorder.note("torch.compile region", "a compiled function")
    recorder.step_aside(state)


def _here(patches: Patches) -> tuple[Recorder | None, ThreadState | None]:
    recorder = patches.recorder
    state = None if recorder is None else recorder.states.get(get_ident())
    return recorder, state if state is not None and state.entered else None


def _owner_of(frame: FrameType) -> int:
    """What turns frame evaluation on and off again: a call, or a context that is entered and left.

    Others turn it off and on in between, which must not look like the end.
    """
    if frame.f_code.co_name in ("__enter__", "__exit__"):
        return id(frame.f_locals.get("self"))
    return id(frame)


def _show_the_original_call(patches: Patches) -> None:
    """Put torch's own module call back while Dynamo compiles.

    It inlines module calls and guards on what it finds, so code compiled with ours in place would
    be compiled again without it.
    """
    try:
        from torch._dynamo.callback import callback_handler
    except ImportError:
        return
    for name in ("torch._dynamo.utils", "torch._dynamo.variables.nn_module"):
        # Imported during the recording, they took ours for torch's own.
        importer: Any = sys.modules.get(name)
        if getattr(importer, "unpatched_nn_module_call", None) is patches.module_call:
            importer.unpatched_nn_module_call = patches.original_call
    show, hide = patches.show_original_call, patches.hide_original_call

    def register() -> None:
        callback_handler.register_start_callback(show)
        callback_handler.register_end_callback(hide)

    def clear() -> None:
        # Which torch._dynamo.reset() does.
        type(callback_handler).clear(callback_handler)
        if patches.recorder is not None:
            register()

    def undo() -> None:
        for callbacks, callback in (
            (callback_handler.start_callbacks, show),
            (callback_handler.end_callbacks, hide),
        ):
            if callback in callbacks:
                callbacks.remove(callback)

    register()
    patches.replace(callback_handler, "clear", clear)
    patches.undo.append(undo)


def follow_exports(patches: Patches) -> None:
    """Put torch's own module call back while a program is exported by way of Dynamo as well.

    The graph names the line that each of its operators comes from.
    """
    exporting: Any = sys.modules.get("torch.export._trace")
    if patches.recorder is None or not hasattr(exporting, "_strict_export"):
        return
    original = exporting._strict_export

    def _strict_export(*args: Any, **kwargs: Any) -> Any:
        patches.show_original_call()
        try:
            return original(*args, **kwargs)
        finally:
            patches.hide_original_call()

    patches.replace(exporting, "_strict_export", _strict_export)


def _hide_our_code() -> None:
    """Have Dynamo pass over our frames on the way to the program's, as it does over torch's."""
    skip_code = getattr(torch._C._dynamo.eval_frame, "skip_code", None)
    if skip_code is None:
        return
    for name, module in list(sys.modules.items()):
        if name.startswith("shapetrace.recorder"):
            for code in _codes_in(vars(module).values()):
                skip_code(code)


def _codes_in(values: Iterable[Any]) -> Iterator[CodeType]:
    for value in values:
        if isinstance(value, FunctionType):
            yield from _nested_codes(value.__code__)
        elif isinstance(value, type) and value.__module__.startswith("shapetrace."):
            yield from _codes_in(vars(value).values())


def _nested_codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _nested_codes(part)


def step_around_tracing(patches: Patches) -> None:
    """Take the modes off while torch.jit traces.

    Sizes are tensors then, so describing one would warn and leave operators in the traced graph.
    """
    for owner, name in _TRACING_ENTRIES:
        if hasattr(owner, name):
            patches.replace(owner, name, _make_tracing_entry(getattr(owner, name), patches))


def _make_tracing_entry(original: Any, patches: Patches) -> Callable[..., Any]:
    def entry(*args: Any, **kwargs: Any) -> Any:
        recorder, state = _here(patches)
        if recorder is None or state is None:
            return original(*args, **kwargs)
        recorder.note("torch.jit tracing", "torch.jit.trace")
        recorder.step_aside(state)
        patches.show_original_call()  # the graph tells the Python stack of each of its operators
        try:
            return original(*args, **kwargs)
        finally:
            patches.hide_original_call()
            recorder.step_back(state)

    return entry
