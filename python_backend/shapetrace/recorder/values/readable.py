"""Which tensors can be read at all, and as what; and reading them so that nobody notices.

Whoever asks runs on the program's thread, in the middle of its computing: nothing here is seen by
autograd, by a mode, by autocast or by a graph that is being made, and no random number is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import torch
from torch import Tensor
from torch._C import DisableTorchFunction
from torch.nn import Parameter

from shapetrace._classes import distributed_tensor, is_kind
from shapetrace._exception_table import leaving_surely
from shapetrace.inspecting.memory import lost_memory_of
from shapetrace.inspecting.profiling import unlisted_of
from shapetrace.inspecting.stable_reads import MemoryGoneError, steady_of

Result = TypeVar("Result")

_internals: Final[Any] = torch._C
_PLAIN: Final = frozenset({Tensor, Parameter})
_BASE: Final[Any] = torch._C.TensorBase
_STRIDED: Final = torch.strided
_lost_memory: Final = lost_memory_of(torch)
_steady: Final = steady_of(torch)
_unlisted: Final = unlisted_of(torch)
_transforming: Final[Any] = getattr(
    getattr(torch._C, "_functorch", None), "peek_interpreter_stack", lambda: None
)
_below_autograd: Final[Any] = _internals._AutoDispatchBelowAutograd
_without_dispatch: Final[Any] = _internals._DisableTorchDispatch
_without_autocast: Final[Any] = _internals._DisableAutocast
_inference_mode: Final[Any] = _internals._InferenceMode


class NotReadError(Exception):
    """A tensor that nothing is known of but dtype and count, for the reason that this says."""


@leaving_surely
def unseen(function: Callable[[Any], Result], argument: Any) -> Result:
    """What a function that computes with plain tensors makes of something."""
    with (
        DisableTorchFunction(),
        _without_dispatch(),
        _below_autograd(),
        _without_autocast(),
        _unlisted(),
    ):
        if torch.is_inference_mode_enabled():
            with _inference_mode(False):
                return function(argument)
        return function(argument)


def readable(tensor: Any) -> Tensor:
    """A tensor whose numbers torch's kernels can be asked for; to be called where all is unseen.

    Raises ``NotReadError`` for any other.
    """
    if type(tensor) not in _PLAIN:
        tensor = _inside(tensor)
    if _transforming() is not None:
        raise NotReadError("within a function transform such as vmap")
    if tensor.layout is not _STRIDED or tensor.is_nested:
        layout = "nested" if tensor.is_nested else str(tensor.layout).removeprefix("torch.")
        raise NotReadError(layout)
    if not tensor.is_cpu:
        _refuse_device(tensor)
    if tensor.is_quantized:
        raise NotReadError("quantized")
    if _internals._get_tracing_state() is not None:
        raise NotReadError("while torch.jit traces")
    if lost := _lost_memory(tensor):
        raise NotReadError(lost)
    try:
        plain: Tensor = _steady(tensor)
    except MemoryGoneError as error:
        raise NotReadError(str(error)) from None
    return plain


def _refuse_device(tensor: Any) -> None:
    device = tensor.device.type
    if device == "meta":
        raise NotReadError("no data on meta")
    if device == "cuda" and torch.cuda.is_current_stream_capturing():
        raise NotReadError("within the capture of a CUDA graph")


def _inside(tensor: Any) -> Any:
    """What a tensor of another class stands for."""
    kind = type(tensor)
    if is_kind(kind, distributed_tensor()):
        tensor = object.__getattribute__(tensor, "_local_tensor")
        if type(tensor) in _PLAIN:
            return tensor
        kind = type(tensor)
    if kind.__torch_dispatch__ is not Tensor.__torch_dispatch__:
        if kind.__module__.startswith(("torch._subclasses", "torch.fx")):
            raise NotReadError("no data while a program is traced")
        raise NotReadError(f"{kind.__name__} keeps its data in its own way")
    if hasattr(kind, "cls_to_become"):
        raise NotReadError("no data before the first call")
    # What a class of the program's has put in the place of an attribute is not asked.
    return _BASE.as_subclass(tensor, Tensor)


def dtype_of(tensor: Any) -> str:
    """The dtype of any tensor."""
    return str(_BASE.dtype.__get__(tensor)).removeprefix("torch.")
