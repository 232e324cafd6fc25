"""What the program calls its tensors: the locals of a function and the parameters of a module."""

from __future__ import annotations

import sys
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from torch import Tensor

from shapetrace.recorder.arguments import tensors_of
from shapetrace.recorder.assignments import ENTRY
from shapetrace.recorder.callsite import Site
from shapetrace.recorder.describe import describe_value, holds_tensor
from shapetrace.recorder.modules import find_parameter

if TYPE_CHECKING:
    from shapetrace.recorder.thread_state import ThreadState

_OPTIMIZED: Final = 0x01
"""The code flag of functions whose locals are fast; a module's or class's body has none."""
_SNAPSHOT_STAYS: Final = sys.version_info < (3, 13)
"""Until 3.13 reading a frame's locals leaves a dictionary behind that keeps the values alive."""
_READING: Final = frozenset({"locals", "vars", "dir", "eval", "exec"})
"""What a function that reads its own locals calls."""

Names = dict[int, str]
"""Names by the identity of the tensor."""


def input_names(
    state: ThreadState, frame: FrameType, site: Site, args: Any, kwargs: Any
) -> tuple[str | None, ...] | None:
    """What the program calls each input tensor; notes the frame's new variables on the way."""
    tensors: list[Tensor] = []
    tensors_of(args if type(args) in (tuple, list) else tuple(args), tensors)
    if kwargs:
        tensors_of(kwargs, tensors)
    local: Names = {}
    if not site.activation.in_torch:
        local = note_locals(state, frame, site)
    names = tuple(local.get(id(tensor)) or _parameter_name(state, tensor) for tensor in tensors)
    return state.recorder.intern(names) if any(names) else None


def _parameter_name(state: ThreadState, tensor: Tensor) -> str | None:
    for call in reversed(state.stack[-2:]):
        name = None if call.module is None else find_parameter(call.module, tensor)
        if name is not None:
            path = call.variant.record.path
            return f"{path}.{name}" if path else name
    return None


def note_locals(state: ThreadState, frame: FrameType, site: Site) -> Names:
    """Note the tensors that a function's locals hold, at the stores that put them there."""
    code = frame.f_code
    if not code.co_flags & _OPTIMIZED:
        return {}
    names: Names = {}
    values = read_locals(frame)
    try:
        activation = site.activation
        assignments = state.recorder.assignments_of(code)
        call = state.stack[-1] if state.stack else None
        if call is not None and state.live.get(id(frame)) is not activation:
            call = None
        before = None
        since: int | None = None
        if call is not None:
            if call.seen is not None and call.seen_in == id(frame):
                before, since = call.seen, call.seen_at
            call.seen = {}
            call.seen_at = site.offset
            call.seen_in = id(frame)
        for name in assignments.names:
            if name not in values:
                continue
            value = values[name]
            if call is not None and call.seen is not None:
                call.seen[name] = id(value)
            kind = type(
                value
            )  # not isinstance: an object of the program's may answer for __class__
            if issubclass(kind, Tensor):
                names.setdefault(id(value), name)
            elif not issubclass(kind, tuple):
                continue  # a list or dict may have changed since it was stored
            if id(value) in state.reshaped:
                continue  # and so has a tensor whose own shape was changed in place
            changed = before is not None and before.get(name) != id(value)
            if before is not None and not changed:
                continue
            store = assignments.store(name, site.offset, since if changed else None)
            if store is None:
                continue
            raw = describe_value(value)
            if holds_tensor(raw):
                offset = None if store == ENTRY else store
                state.recorder.note_variable(activation, name, offset, raw)
    finally:
        forget_locals(frame, values)
    return names


def read_locals(frame: FrameType) -> Any:
    """The locals of a running function; nothing where the function reads them itself.

    Until 3.13 all who read them get the same dictionary: what the program was given by ``locals()``
    would change under its hands.
    """
    if _SNAPSHOT_STAYS and not _READING.isdisjoint(frame.f_code.co_names):
        return {}
    return frame.f_locals


def forget_locals(frame: FrameType, values: Any) -> None:
    """Let go of the values that reading a function's locals copied into its frame."""
    if _SNAPSHOT_STAYS and frame.f_code.co_flags & _OPTIMIZED:
        # Referred to by the frame, by our caller, here, and by the question itself.
        if sys.getrefcount(values) <= 4:
            values.clear()
