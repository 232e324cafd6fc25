"""The reasons why a tensor's numbers cannot be read: one table for all readers."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias

from shapetrace._classes import is_kind, name_of
from shapetrace.inspecting.memory import GIVEN_BACK, GONE, lost_memory_of


class Reason(Enum):
    """Why a tensor is not read."""

    TRACED = "no data while a program is traced"
    """A fake or functional tensor, or a proxy, without data."""
    OWN_DATA = "{} keeps its data in its own way"
    """A class with ``__torch_dispatch__``, which reading would run."""
    NOT_MADE = "no data before the first call"
    """A parameter or buffer of a lazy module."""
    TRANSFORM = "within a function transform such as vmap"
    META = "no data on meta"
    CUDA_GRAPH = "within the capture of a CUDA graph"
    DEVICE = "on {}"
    """On another device than the CPU: reading waits for the device."""
    NESTED = "nested"
    LAYOUT = "{}"
    QUANTIZED = "quantized"
    JIT_TRACE = "while torch.jit traces"
    GIVEN_BACK = GIVEN_BACK
    GONE = GONE


class Unreadable(NamedTuple):
    """Why one tensor is not read."""

    reason: Reason
    detail: str = ""
    """The class, the device or the layout."""

    @property
    def text(self) -> str:
        """The reason in a few words."""
        return self.reason.value.format(self.detail)


Ask: TypeAlias = Callable[[Any], Unreadable | None]

_OF_TRACERS: Final = ("torch._subclasses", "torch.fx")


@cache
def unreadable_of(torch: Any, *accepted: Reason) -> Ask:
    """Return a function that gives the reason why a tensor is not read, or None.

    Reasons that are ``accepted`` count as none. For classes that keep their data in their own way,
    only passing reasons are checked then. Call the function where no function mode and no class can
    intercept it. It raises what torch raises.
    """
    base, plain = torch._C.TensorBase, torch.Tensor
    ordinary = frozenset({plain, torch.nn.Parameter})
    transforming = transforming_of(torch)
    tracing = getattr(torch._C, "_get_tracing_state", lambda: None)
    is_cpu, device_of, layout_of = base.is_cpu.__get__, base.device.__get__, base.layout.__get__
    is_nested, is_quantized = base.is_nested.__get__, base.is_quantized.__get__
    strided, lost_memory = torch.strided, lost_memory_of(torch)
    allowed = frozenset(accepted)
    asks_layout = not allowed.issuperset({Reason.LAYOUT, Reason.NESTED})
    asks_quantized = Reason.QUANTIZED not in allowed
    asks_tracing = Reason.JIT_TRACE not in allowed
    asks_memory = not allowed.issuperset({Reason.GIVEN_BACK, Reason.GONE})

    def by_class(kind: type) -> Unreadable | None:
        if not has_plain_data(kind, plain):
            is_traced = kind.__module__.startswith(_OF_TRACERS)
            return Unreadable(Reason.TRACED if is_traced else Reason.OWN_DATA, name_of(kind))
        if is_kind(kind, torch.nn.parameter.UninitializedTensorMixin):
            return Unreadable(Reason.NOT_MADE, name_of(kind))
        return None

    def by_device(tensor: Any) -> Unreadable | None:
        device = device_of(tensor)
        if device.type == "meta":
            return Unreadable(Reason.META)
        if device.type == "cuda" and torch.cuda.is_current_stream_capturing():
            return Unreadable(Reason.CUDA_GRAPH)
        return None if Reason.DEVICE in allowed else Unreadable(Reason.DEVICE, str(device))

    def unreadable(tensor: Any) -> Unreadable | None:
        found = None if type(tensor) in ordinary else by_class(type(tensor))
        if found is not None and found.reason not in allowed:
            return found
        if transforming() is not None:
            return Unreadable(Reason.TRANSFORM)
        if found is not None:
            is_capturing = torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()
            return Unreadable(Reason.CUDA_GRAPH) if is_capturing else None
        if not is_cpu(tensor):
            found = by_device(tensor)
            if found is not None and found.reason not in allowed:
                return found
        if asks_layout:
            if is_nested(tensor):
                return Unreadable(Reason.NESTED)
            if (layout := layout_of(tensor)) is not strided:
                return Unreadable(Reason.LAYOUT, str(layout).removeprefix("torch."))
        if asks_quantized and is_quantized(tensor):
            return Unreadable(Reason.QUANTIZED)
        if asks_tracing and tracing() is not None:
            return Unreadable(Reason.JIT_TRACE)
        if asks_memory and (lost := lost_memory(tensor)):
            return Unreadable(Reason(lost))
        return None

    return unreadable


def has_plain_data(kind: type, plain: Any) -> bool:
    """Return whether torch's kernels compute with a class's tensors without its code."""
    handler = getattr(kind, "__torch_dispatch__", None)
    return handler is plain.__torch_dispatch__


def transforming_of(torch: Any) -> Callable[[], Any]:
    """Return a function that gives None where no function transform such as ``vmap`` runs.

    Tensors in a transform belong to it.
    """
    functorch = getattr(torch._C, "_functorch", None)
    found: Callable[[], Any] = getattr(functorch, "peek_interpreter_stack", lambda: None)
    return found
