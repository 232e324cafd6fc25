"""What the program calls its tensors: the locals of a function and the parameters of a module."""

from __future__ import annotations

from types import FrameType
from typing import TYPE_CHECKING, Any

from torch import Tensor

from shapetrace.recorder.arguments import tensors_of
from shapetrace.recorder.callsite import Site
from shapetrace.recorder.modules import find_parameter
from shapetrace.recorder.steps import is_comprehension
from shapetrace.recorder.variables import names_around, note_callers, note_locals

if TYPE_CHECKING:
    from shapetrace.recorder.thread_state import ThreadState


def input_names(
    state: ThreadState, frame: FrameType, site: Site, args: Any, kwargs: Any
) -> tuple[str | None, ...] | None:
    """What the program calls each input tensor; notes the frame's new variables on the way."""
    tensors: list[Tensor] = []
    tensors_of(args if type(args) in (tuple, list) else tuple(args), tensors)
    if kwargs:
        tensors_of(kwargs, tensors)
    local: dict[int, str] = {}
    if not site.activation.in_torch:
        local = note_locals(state, frame, site, tensors=tensors)
        if is_comprehension(frame.f_code):
            local = {**names_around(frame, state.recorder, tensors), **local}
    note_callers(state, frame, site)
    names = tuple(local.get(id(tensor)) or _parameter_name(state, tensor) for tensor in tensors)
    return state.recorder.intern(names) if any(names) else None


def _parameter_name(state: ThreadState, tensor: Tensor) -> str | None:
    for call in reversed(state.stack[-2:]):
        name = None if call.module is None else find_parameter(call.module, tensor)
        if name is not None:
            path = call.variant.record.path
            return f"{path}.{name}" if path else name
    return None
