"""Remembers tensors: what they look like, and on the CPU a sample of the bytes."""

from __future__ import annotations

from _thread import _count as other_threads
from typing import Any, Final, NamedTuple

from shapetrace._asynchronous import is_asynchronous
from shapetrace._exception_table import leaving_surely
from shapetrace.events import followed
from shapetrace.events.followed import FollowedValue
from shapetrace.events.model import Other
from shapetrace.inspecting.sampling import (
    COUNTED,
    UNCOUNTED,
    SampleLayout,
    layout_of,
    read,
    read_steadily,
)
from shapetrace.inspecting.tensor_changes import SeenTensor
from shapetrace.panes.tensors import described
from shapetrace.variables.loaded import Tensors
from shapetrace.variables.numbers import Numbers, numbers_of_tensor

_MOST_KNOWN: Final = 4096


class TensorKind(NamedTuple):
    """Shared facts of tensors with equal class, dtype, shape and device."""

    described: FollowedValue
    layout: SampleLayout | None
    """The bytes to read; None if they are not on the CPU."""
    itemsize: int
    is_complex: bool


_looks: Final[dict[object, TensorKind]] = {}


@leaving_surely
def describe_tensor(tensor: Any, tensors: Tensors) -> FollowedValue:
    """Describe a tensor."""
    if tensors.function_modes():
        with tensors.as_is():
            return _described(tensor, tensors)
    return _described(tensor, tensors)


def _described(tensor: Any, tensors: Tensors) -> FollowedValue:
    look = look_at(tensor, tensors) if type(tensor) in tensors.plain else None
    return _describe(tensor, tensors) if look is None else look.described


def _describe(tensor: Any, tensors: Tensors) -> FollowedValue:
    try:
        return FollowedValue(followed.TENSOR, described(tensor, tensors.torch))
    except Exception as error:
        if is_asynchronous(error):
            raise
        return FollowedValue(followed.TENSOR, Other(type(tensor).__name__))


def look_at(tensor: Any, tensors: Tensors, version: int | None = 0) -> TensorKind | None:
    """Describe a plain tensor; None if it refuses, or belongs to a transform."""
    try:
        key = (
            tensor.shape,
            tensor.stride(),
            tensor.dtype,
            tensor.is_cpu or tensor.device,
            tensor.requires_grad,
            version is None,
            type(tensor),
        )
        look = _looks.get(key)
    except Exception as error:
        # Symbolic sizes, sparse, nested and functorch's tensors refuse some of these.
        if is_asynchronous(error):
            raise
        return None
    if look is None:
        layout = None
        if tensor.is_cpu and tensor.layout is tensors.strided:
            size = tensor.element_size()
            strides = tuple(stride * size for stride in tensor.stride())
            extent = UNCOUNTED if version is None else COUNTED
            layout = layout_of(tensor.shape, strides, size, extent)
        size = tensor.element_size()
        look = TensorKind(_describe(tensor, tensors), layout, size, tensor.is_complex())
        if len(_looks) >= _MOST_KNOWN:
            _looks.clear()
        _looks[key] = look
    return look


class TensorMemory(SeenTensor):
    """A tensor."""

    __slots__ = ("content", "described", "is_counted", "layout", "numbers", "tensors")

    def __init__(self, tensor: Any, tensors: Tensors, wants_numbers: bool = False) -> None:
        """Remember a tensor, unnoticed by modes and its own class."""
        is_plain = type(tensor) in tensors.plain
        # Held while it is read, as another thread may give the tensor another one.
        storage = _storage_of(tensor) if is_plain else None
        super().__init__(tensor, tensors.torch)
        self.tensors = tensors
        self.layout: SampleLayout | None = None
        self.content = b""
        look = look_at(tensor, tensors, self.version) if is_plain else None
        if look is None:
            self.described = _describe(tensor, tensors)
        else:
            self.described = look.described
            self._read(tensor, storage, look)
        is_counted = self.version is not None and self.address is not None
        self.is_counted = is_counted and look is not None
        """Whether version and address are enough to notice changes, and run no code of a class."""
        self.numbers: Numbers | None = numbers_of_tensor(tensor, tensors) if wants_numbers else None

    def _read(self, tensor: Any, storage: Any, look: TensorKind) -> None:
        """Read a sample of its bytes, if they are surely there.

        Memory that is not torch's own (NumPy's, a buffer's) may be gone before the tensor.
        """
        layout, address = look.layout, self.address
        if layout is None or not address or storage is None:
            return
        try:
            start = self.offset * look.itemsize
            if not storage.resizable() or start + layout.reach > storage.nbytes():
                return
            if tensor.is_neg() or (look.is_complex and tensor.is_conj()):
                return  # its bytes are not its whole content
            if other_threads():
                if tensor.untyped_storage() is not storage:
                    return
                content = read_steadily(address + start, layout)
                if content is None or self.torch.address_of(tensor) != address:
                    return  # another thread has freed it
                self.content = content
            else:
                self.content = read(address + start, layout)
            self.layout = layout
        except Exception as error:
            if is_asynchronous(error):
                raise

    def has_content_of(self, tensor: Any) -> bool:
        """Return whether a tensor looks the same, with the same bytes where they are read."""
        now = TensorMemory(tensor, self.tensors)
        return (
            now.described == self.described
            and now.layout == self.layout
            and now.content == self.content
        )


def _storage_of(tensor: Any) -> Any:
    try:
        return tensor.untyped_storage()
    except Exception as error:
        # Functorch's tensors and fake tensors have no storage.
        if is_asynchronous(error):
            raise
        return None
