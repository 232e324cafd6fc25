"""Whether a value differs from what was last seen.

- Tensors: as ``inspecting.tensor_changes`` does; by their whole content where torch counts no
  changes, and also by the steps of fused optimizers, which the version does not count.
- Texts, numbers and None: by class and value; NaN equals NaN.
- Arrays, and tensors of which not all changes are counted, those of inference mode and the running
  statistics of normalizations: by content.
- Lists, tuples, dictionaries, sets and dataclasses: by their items, recursively.
- Modules and all other objects: by identity.
"""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING, Any, Final, Protocol

import torch
from torch._C import DisableTorchFunction

from shapetrace._asynchronous import is_asynchronous
from shapetrace._classes import is_kind
from shapetrace._exception_table import leaving_surely
from shapetrace.capture.copies import (
    ATOMS,
    CannotCopyError,
    array_copied,
    as_bits,
    atoms_of,
    copied_ordinary,
    function_modes,
    is_plain,
    is_there,
    lost_memory,
    swaps_tensors,
    unseen,
)
from shapetrace.capture.fused_steps import fused_steps_of
from shapetrace.inspecting import changes
from shapetrace.inspecting.changes import SeenContainer, SeenObject, SeenPlain, SeenSet, Strong
from shapetrace.inspecting.containers import contained_by
from shapetrace.inspecting.tensor_changes import SeenTensor
from shapetrace.inspecting.torch_access import Torch

_TORCH: Final = Torch(torch)
_version_of: Final = _TORCH.version_of
_DEEPEST: Final = 16
_USUAL: Final = frozenset({list, tuple, dict})
_MOST_COMPARED: Final = 1 << 22
"""Most numbers of a tensor without versions that are compared."""


class SeenInCall(changes.Seen, Protocol):
    """A remembered value that can outlive its call."""

    def lasting(self) -> SeenInCall | None:
        """The part that may be kept after the call, which keeps nothing alive."""


class Uncounted:
    """A value that torch changes without counting it."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def seen(value: Any) -> SeenInCall:
    """Remember a value."""
    if (
        type(value) is torch.Tensor
        and not function_modes()
        and not value.is_inference()
        and not swaps_tensors()
    ):
        plain = SeenOrdinary(value)
        plain.version = value._version
        return plain
    return _seen(value, 0)


def _seen(value: Any, depth: int) -> SeenInCall:
    kind = type(value)  # not isinstance, which asks the value for its class
    if issubclass(kind, torch.Tensor):
        return SeenWholeTensor(value)
    if kind is Uncounted:
        return _SeenUncounted(value, depth)
    if issubclass(kind, ATOMS):
        return SeenAtom(value)
    if depth < _DEEPEST:
        if kind not in _USUAL:
            if is_kind(kind, set) or is_kind(kind, frozenset):
                return _SeenSet(value)
            numpy = sys.modules.get("numpy")
            if numpy is not None and issubclass(kind, (numpy.ndarray, numpy.generic)):
                return _SeenArray(value, numpy)
            if is_kind(kind, torch.nn.Module):
                return _SeenObject(value)
        inside = contained_by(value, kind, computed=True)
        if inside is not None:
            keys, values = inside
            parts = [_seen(inner, depth + 1) for inner in values]
            return _SeenContainer(kind, len(parts), keys, parts)
    return _SeenObject(value)


class SeenOrdinary(weakref.ref[Any]):
    """An ordinary tensor, by identity and version."""

    __slots__ = ("version",)
    version: int

    if TYPE_CHECKING:

        def __call__(self) -> Any:
            """The tensor, or None."""

    def is_still(self, value: Any) -> bool:
        """Return whether it is the same tensor, and as it was."""
        # A dead reference gives None, which the value was not.
        if value is None or self() is not value:
            return False
        if function_modes():
            return self._is_unchanged(value)
        return bool(value._version == self.version)

    @leaving_surely
    def _is_unchanged(self, value: Any) -> bool:
        with DisableTorchFunction():
            return bool(value._version == self.version)

    def lasting(self) -> SeenInCall | None:
        """Itself."""
        return self


def _version_with_steps(tensor: Any) -> int:
    """The version of a tensor, to which the steps of fused optimizers are added."""
    version: int = _version_of(tensor) + fused_steps_of(tensor)
    return version


_TORCH.version_of = _version_with_steps


class SeenWholeTensor(SeenTensor):
    """Any other tensor: parameters, those of other classes, and those without versions."""

    __slots__ = ("_content",)

    @leaving_surely
    def __init__(self, tensor: torch.Tensor) -> None:
        with DisableTorchFunction():
            super().__init__(tensor, _TORCH)
        self._content = None if self.version is not None else _content_of(tensor)

    def has_content_of(self, tensor: Any) -> bool:
        """Return whether a tensor has the same numbers."""
        return _is_equal(self._content, _content_of(tensor))

    def lasting(self) -> SeenInCall | None:
        """Itself; None for a tensor subclass, which it would keep alive."""
        reference = self.reference
        if type(reference) is Strong and type(reference.value) is not torch.nn.Parameter:
            return None
        return self


def _content_of(tensor: torch.Tensor) -> torch.Tensor | None:
    """A copy to compare with, unless the tensor is too large."""
    if not is_plain(tensor):
        return None
    with unseen():
        if not tensor.is_cpu or tensor.numel() > _MOST_COMPARED or lost_memory(tensor):
            return None
        try:
            return copied_ordinary(tensor)
        except CannotCopyError:
            return None


def _is_equal(one: torch.Tensor | None, other: torch.Tensor | None) -> bool:
    if one is None or other is None:
        return one is other
    with unseen():
        try:
            if one.shape != other.shape or one.layout is not torch.strided:
                return False
            return torch.equal(one, other) or bool(
                ((one == other) | (one.ne(one) & other.ne(other))).all()
            )
        except RuntimeError as error:
            if is_asynchronous(error):
                raise
            return _has_equal_bits(one, other)


def _has_equal_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two tensors have equal bits, for dtypes that torch cannot compare."""
    try:
        return torch.equal(as_bits(one), as_bits(other))
    except RuntimeError as error:
        if is_asynchronous(error):
            raise
        return False


class _SeenUncounted:
    """A tensor whose changes torch does not count: by class and content."""

    __slots__ = ("_content", "_whole")

    def __init__(self, value: Uncounted, depth: int) -> None:
        self._whole: SeenInCall | None = _seen(value.value, depth)
        self._content = _content_of(value.value)

    def is_still(self, value: Any) -> bool:
        if not isinstance(value, Uncounted) or self._whole is None:
            return False
        if not self._whole.is_still(value.value):
            return False
        return self._content is None or _is_equal(self._content, _content_of(value.value))

    def lasting(self) -> SeenInCall | None:
        self._whole = None if self._whole is None else self._whole.lasting()
        return None if self._whole is None else self


class SeenAtom(SeenPlain):
    """A value that never changes."""

    __slots__ = ()

    def lasting(self) -> SeenInCall:
        """Itself."""
        return self


class _SeenObject(SeenObject):
    __slots__ = ()

    def lasting(self) -> SeenInCall | None:
        return None if type(self.reference) is Strong else self


class _SeenContainer(SeenContainer):
    """A list, tuple, dictionary or dataclass."""

    __slots__ = ()

    def is_still(self, value: Any) -> bool:
        if type(value) is not self.kind:
            return False
        inside = contained_by(value, self.kind, computed=True)
        if inside is None:
            return False
        keys, values = inside
        return self.holds(len(values), keys, values)

    def lasting(self) -> SeenInCall | None:
        """Itself, if every item may be kept."""
        for index, part in enumerate(self.parts):
            lasting = part.lasting()
            if lasting is None:
                return None
            self.parts[index] = lasting
        return self


class _SeenSet(SeenSet):
    __slots__ = ()

    def __init__(self, value: Any) -> None:
        length, atoms = _in_set(value)
        super().__init__(type(value), length, atoms)

    def is_still(self, value: Any) -> bool:
        return type(value) is self.kind and _in_set(value) == (self.length, self.content)

    def lasting(self) -> SeenInCall:
        return self


def _in_set(value: Any) -> tuple[int, set[Any]]:
    """The size of a set, and its values that never change."""
    of: Any = set if is_kind(type(value), set) else frozenset
    return of.__len__(value), atoms_of(value)


class _SeenArray:
    __slots__ = ("_content", "_numpy")

    def __init__(self, value: Any, numpy: Any) -> None:
        self._numpy = numpy
        # Its memory is gone, so it equals nothing.
        self._content = array_copied(value, numpy) if is_there(value, numpy) else None

    def is_still(self, value: Any) -> bool:
        numpy, known = self._numpy, self._content
        if known is None or not isinstance(value, (numpy.ndarray, numpy.generic)):
            return False
        if not is_there(value, numpy):
            return False
        if value.dtype != known.dtype or value.shape != known.shape:
            return False
        if known.dtype.hasobject:
            return all(map(_is_same, known.flat, numpy.asarray(value).flat))
        return bool(numpy.array_equal(known, value, equal_nan=known.dtype.kind in "fcmM"))

    def lasting(self) -> SeenInCall:
        return self


def _is_same(one: object, other: object) -> bool:
    return one is other
