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
from shapetrace.inspecting.profiling import unlisted_of
from shapetrace.inspecting.readability import Reason, unreadable_of
from shapetrace.inspecting.stable_reads import MemoryGoneError, steady_of

Result = TypeVar("Result")

_internals: Final[Any] = torch._C
_PLAIN: Final = frozenset({Tensor, Parameter})
_BASE: Final[Any] = torch._C.TensorBase
_unreadable: Final = unreadable_of(torch, Reason.DEVICE)
_steady: Final = steady_of(torch)
_unlisted: Final = unlisted_of(torch)
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
    kind = type(tensor)
    if kind not in _PLAIN and is_kind(kind, distributed_tensor()):
        tensor = object.__getattribute__(tensor, "_local_tensor")
    if found := _unreadable(tensor):
        raise NotReadError(found.text)
    if type(tensor) not in _PLAIN:
        # What a class of the program's has put in the place of an attribute is not asked.
        tensor = _BASE.as_subclass(tensor, Tensor)
    try:
        plain: Tensor = _steady(tensor)
    except MemoryGoneError as error:
        raise NotReadError(str(error)) from None
    return plain


def dtype_of(tensor: Any) -> str:
    """The dtype of any tensor."""
    return str(_BASE.dtype.__get__(tensor)).removeprefix("torch.")
