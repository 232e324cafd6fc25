"""Copies values unnoticed; the copies keep nothing of the program's alive.

Tensors are detached and on the CPU; tuples, lists, dictionaries, sets and dataclasses are made anew
around copies. Modules and all other objects are replaced by a short text, ``<Linear>``.
"""

from __future__ import annotations

import enum
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any, Final

import torch
from torch._C import DisableTorchFunction

from shapetrace._asynchronous import is_asynchronous
from shapetrace._classes import is_kind, name_of, qualified_name_of
from shapetrace._exception_table import leaving_surely
from shapetrace.capture import dtensors
from shapetrace.inspecting.containers import INSIDE, remade
from shapetrace.inspecting.guards import Guards
from shapetrace.inspecting.memory import ARRAY_GONE, lost_memory_of, may_be_read
from shapetrace.inspecting.profiling import unlisted_of
from shapetrace.inspecting.readability import Reason, transforming_of, unreadable_of
from shapetrace.inspecting.stable_reads import MemoryGoneError, steady_of
from shapetrace.inspecting.unnoticed import unnoticed_of

_PLAIN: Final = frozenset({torch.Tensor, torch.nn.Parameter})
"""Tensor classes whose operators run in torch's kernels, without Python code."""

ATOMS: Final = (
    *(int, float, complex, bool, str, bytes, type(None), type(Ellipsis), range, slice),
    *(enum.Enum, torch.dtype, torch.device, torch.layout, torch.memory_format),
)
"""Classes of values that never change, and are stored as they are."""

_FUNCTIONS: Final = (types.FunctionType, types.MethodType, types.BuiltinFunctionType)

DEEPEST: Final = 32
"""Limit on the depth of containers that are copied."""


class CannotCopyError(Exception):
    """A tensor or an array cannot be copied here; the message says why."""


class CopiedOnTheWay:
    """Asynchronous copies from other devices that may not have arrived yet."""

    def __init__(self) -> None:
        self._streams: set[torch.cuda.Stream] = set()

    def copy(self, tensor: torch.Tensor) -> torch.Tensor:
        """Start a copy into pinned memory, which the device fills while the program goes on."""
        pinned = tensor.device.type == "cuda" and tensor.layout is torch.strided
        if not pinned:
            return tensor.to("cpu", copy=True)
        self._streams.add(torch.cuda.current_stream(tensor.device))
        copy = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu", pin_memory=True)
        return copy.copy_(tensor, non_blocking=True)

    def arrive(self) -> bool:
        """Wait for all pending copies; return whether there were any."""
        waited = bool(self._streams)
        while self._streams:
            self._streams.pop().synchronize()
        return waited


ON_THE_WAY: Final = CopiedOnTheWay()


def is_plain(value: object) -> bool:
    """Return whether a value is a tensor whose class has no Python code of its own."""
    return type(value) in _PLAIN


def is_ordinary(value: Any) -> bool:
    """Return whether a value is a dense CPU tensor that no mode or transform intercepts."""
    # Nearly all values are ordinary, and each extra check costs a good part of a copy.
    try:
        return (
            type(value) in _PLAIN
            and not (function_modes() or dispatch_modes() or _is_inferring() or swaps_tensors())
            and not (_transforming() or tracing_state())
            and value.is_cpu
            and value._version >= 0
        )
    except RuntimeError as error:
        # A tensor of inference mode has no version; `is_inference` costs more.
        if is_asynchronous(error):
            raise
        return False


@leaving_surely
def copied_ordinary(tensor: torch.Tensor) -> torch.Tensor:
    """A copy of an ordinary tensor; raises ``CannotCopyError`` where its memory is gone."""
    if lost := lost_memory(tensor):
        raise CannotCopyError(lost)
    if _unlisted.is_needed():
        with _unlisted(), _below_autograd():
            return _cloned(tensor)
    if not tensor.requires_grad:
        return _cloned(tensor)
    with _below_autograd():
        return _cloned(tensor)


def _cloned(tensor: torch.Tensor) -> torch.Tensor:
    try:
        kept: torch.Tensor = steady(tensor)
    except MemoryGoneError as error:
        raise CannotCopyError(str(error)) from None
    if kept is not tensor and kept.is_contiguous() and not kept.is_conj():
        return kept  # a copy already
    try:
        return kept.clone()
    except RuntimeError as error:
        return _copied_as_bits(kept, error)


def as_bits(tensor: torch.Tensor) -> torch.Tensor:
    """View a tensor as integers of its bits, which torch supports better than some dtypes.

    Raises ``RuntimeError`` where there are none of its size.
    """
    return tensor.view({2: torch.int16, 4: torch.int32}.get(tensor.element_size(), torch.uint8))


def _copied_as_bits(tensor: torch.Tensor, error: RuntimeError) -> torch.Tensor:
    """Copy a tensor by its bits, after torch has refused to copy it in its own dtype."""
    if is_asynchronous(error):
        raise error
    try:
        # Viewing the bits of a quantized tensor crashes the process.
        if not tensor.is_quantized:
            return as_bits(tensor).clone().view(tensor.dtype)
    except RuntimeError as another:
        if is_asynchronous(another):
            raise
    reason = str(error).strip().splitlines()[0]
    raise CannotCopyError(f"torch cannot copy it: {reason}") from None


def copied(value: Any) -> Any:
    """A copy of a value; raises ``CannotCopyError`` for one that cannot be read here."""
    if isinstance(value, torch.Tensor):
        return _copied_tensor(value)
    refuse_lost_memory(value)
    return remade(value, _copied_leaf, _copied_key, text_of, DEEPEST)


def _copied_leaf(value: Any) -> Any:
    """The copy of a value that is looked into no further."""
    if isinstance(value, torch.Tensor):
        try:
            return _copied_tensor(value)
        except CannotCopyError as error:
            return f"<{error}>"
    if isinstance(value, ATOMS):
        return value
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        if value.dtype.hasobject:
            return text_of(value)
        if not is_there(value, numpy):
            return f"<{ARRAY_GONE}>"
        return array_copied(value, numpy)[()]
    if isinstance(value, (set, frozenset)):
        return atoms_of(value)
    return text_of(value) if isinstance(value, torch.nn.Module) else INSIDE


def _copied_key(key: Any) -> Any:
    return key if isinstance(key, (*ATOMS, tuple)) else text_of(key)


def atoms_of(value: Any) -> set[Any]:
    """The values of a set that never change."""
    of: Any = set if is_kind(type(value), set) else frozenset
    return {inner for inner in [*of.__iter__(value)] if issubclass(type(inner), ATOMS)}


def text_of(value: Any) -> str:
    """Describe an object that is not copied; none of its code runs."""
    if issubclass(type(value), type):  # not isinstance, which asks the value for its class
        return f"<class {qualified_name_of(value)}>"
    if type(value) in _FUNCTIONS:
        return f"<function {value.__qualname__}>"
    return f"<{name_of(type(value))}>"


def _copied_tensor(tensor: torch.Tensor) -> torch.Tensor:
    """A detached copy of a tensor, on the CPU."""
    if is_ordinary(tensor):
        return copied_ordinary(tensor)
    refuse_unreadable(tensor)
    if type(tensor) in _PLAIN:
        with unseen():
            return _to_cpu(tensor)
    with without_modes():
        refuse_freed(tensor)
        # The local shard of a distributed tensor: gathering all of it would be a collective call.
        return _to_cpu(dtensors.plain(tensor.detach()))


lost_memory: Final = lost_memory_of(torch)
steady: Final = steady_of(torch)
_unlisted: Final = unlisted_of(torch)


@leaving_surely
def refuse_freed(tensor: torch.Tensor) -> None:
    """Raise ``CannotCopyError`` where the memory of a tensor, or of one that it holds, is gone."""
    # The tensor's own class would run code of the program's.
    with DisableTorchFunction():
        lost = lost_memory(tensor)
    if lost:
        raise CannotCopyError(lost)


swaps_tensors: Final = torch.__future__.get_swap_module_params_on_conversion
"""Whether modules swap tensors when they are converted or loaded, which weak references prevent."""
function_modes: Final = torch._C._len_torch_function_stack
dispatch_modes: Final = torch._C._len_torch_dispatch_stack
_is_inferring: Final = torch.is_inference_mode_enabled
_below_autograd: Any = torch._C._AutoDispatchBelowAutograd
_internals: Any = torch._C
tracing_state: Any = _internals._get_tracing_state
"""Returns the state of torch.jit.trace, which records even queries of sizes; None outside it."""
_transforming: Final = transforming_of(torch)


@leaving_surely
def refuse_unreadable(tensor: torch.Tensor) -> None:
    """Raise ``CannotCopyError`` for a tensor without data, or one that exists only in a trace."""
    with DisableTorchFunction():
        found = _unreadable(tensor)
    if found is not None:
        words = f"a {found.detail} has" if found.detail else "nothing is copied"
        raise CannotCopyError(f"{words} {found.text}")


_unreadable: Final = unreadable_of(
    torch,
    *(Reason.OWN_DATA, Reason.META, Reason.DEVICE, Reason.NESTED, Reason.LAYOUT),
    *(Reason.QUANTIZED, Reason.JIT_TRACE, Reason.GIVEN_BACK, Reason.GONE),
)


def shown(value: Any, look: Callable[[Any], Any]) -> Any:
    """The result of a function on the detached value; raises ``CannotCopyError``."""
    is_tensor = isinstance(value, torch.Tensor)
    if is_tensor:
        refuse_unreadable(value)
    else:
        refuse_lost_memory(value)
    with without_modes():
        if is_tensor:
            refuse_freed(value)
            value = value.detach()
        return look(value)


def refuse_lost_memory(value: Any) -> None:
    """Raise ``CannotCopyError`` for an array that cannot be read without a crash."""
    numpy = sys.modules.get("numpy")
    is_array = numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic))
    if is_array and not is_there(value, numpy):
        raise CannotCopyError(ARRAY_GONE)


def array_copied(value: Any, numpy: Any) -> Any:
    """A copy of an array or of a scalar of NumPy's, as an array."""
    # `array` returns a view of a record's memory, even with `copy`.
    return numpy.array(value, copy=True) if value.ndim else numpy.array(value).copy()


def is_there(value: Any, numpy: Any) -> bool:
    """Return whether an array or a scalar of NumPy's can be read."""
    return may_be_read(value, numpy.ndarray)


def _to_cpu(tensor: torch.Tensor) -> torch.Tensor:
    refuse_freed(tensor)
    if tensor.is_cpu or tensor.is_meta:
        return _cloned(tensor)
    try:
        return ON_THE_WAY.copy(tensor)
    except RuntimeError as error:
        return _copied_as_bits(tensor, error)


_unnoticed: Final = unnoticed_of(torch)
unseen: Final = _unnoticed.unseen
without_modes: Final = _unnoticed.without_modes


def unseen_among(values: Iterable[Any]) -> Guards:
    """Like ``unseen``, for everything in these values; tensor subclasses run their own code."""
    # Tensor subclasses cannot compute with the Python dispatch modes turned off.
    is_plain = all(map(_has_only_plain, values))
    return unseen() if is_plain else _unnoticed.unseen_but_by_classes()


def _has_only_plain(value: Any, depth: int = 0) -> bool:
    """Return whether a value surely contains no tensor subclass."""
    kind = type(value)
    if kind in _PLAIN or isinstance(value, ATOMS):
        return True
    if kind is list or kind is tuple:
        inside = value
    elif kind is dict:
        inside = value.values()
    else:
        numpy = sys.modules.get("numpy")
        return numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic))
    return depth < DEEPEST and all(_has_only_plain(inner, depth + 1) for inner in inside)
