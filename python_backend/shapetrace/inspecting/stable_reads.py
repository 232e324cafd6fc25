"""Reads memory that another thread may free during the read.

torch releases the interpreter's lock while it reads, and another thread may shrink the storage just
then, as FSDP does. So if there is another thread, the kernel copies the numbers first: it fails
where the memory is gone, while a direct read crashes the process.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from errno import EFAULT
from functools import cache
from sys import _current_frames
from typing import Any, Final, TypeAlias

from shapetrace.inspecting.memory import GIVEN_BACK, GONE, address_of_data, reach_of

Part: TypeAlias = tuple[int, int]
"""Address and length of a piece of memory."""
Read: TypeAlias = Callable[[Sequence[Part], int], bool]
"""Copies pieces of memory, one after the other, to an address; False if one is gone."""

_MOST_BYTES: Final = 1 << 30
"""The kernel reads less than two gigabytes in one call."""
_MOST_PARTS: Final = 1024
_BYTES_FOR_A_PART: Final = 4096
"""The overhead of one more piece, in bytes that are read in the same time."""


class MemoryGoneError(Exception):
    """Another thread has freed the memory of a tensor during the read; the message says how."""


@cache
def steady_of(torch: Any) -> Callable[[Any], Any]:
    """Return a function that gives a tensor with equal numbers that no other thread can free.

    It is the tensor itself if this is the only thread, or if it is not a strided CPU tensor. Call
    the function where no mode and no tensor class can intercept it. It raises ``MemoryGoneError``.
    """
    base, plain = torch._C.TensorBase, torch.Tensor
    is_cpu, layout_of = base.is_cpu.__get__, base.layout.__get__
    is_quantized, is_nested = base.is_quantized.__get__, base.is_nested.__get__
    address_of, is_lazy = address_of_data(torch), torch._C._is_cow_tensor

    def steady(tensor: Any) -> Any:
        if (
            len(_current_frames()) == 1  # our own thread has no frame while it waits
            or type(tensor).__torch_dispatch__ is not plain.__torch_dispatch__
            or not is_cpu(tensor)
            or layout_of(tensor) is not torch.strided
            or is_quantized(tensor)
            or is_nested(tensor)
            or base._is_zerotensor(tensor)
            or is_lazy(tensor)
            or not base.numel(tensor)
        ):
            return tensor
        # The tensor may also get another storage.
        storage, address = base.untyped_storage(tensor), address_of(tensor)
        size, offset = base.element_size(tensor), base.storage_offset(tensor)
        shape, strides = base.shape.__get__(tensor), base.stride(tensor)
        begin, reach = address + offset * size, reach_of(tensor, base)
        parts = list(_runs(begin, shape, strides, size, reach // _BYTES_FOR_A_PART))
        is_gathered = bool(parts)
        if not is_gathered:
            parts = [(begin, reach)]
        copy = torch.empty(sum(each for _, each in parts), dtype=torch.uint8, device="cpu")
        is_there = address and read_memory(parts, copy.data_ptr())
        # The bytes are not the tensor's if the memory was freed and used again.
        if (
            not is_there
            or address_of(tensor) != address
            or storage.nbytes() < offset * size + reach
        ):
            raise MemoryGoneError(GIVEN_BACK if storage.resizable() else GONE)
        # Made as bytes: torch warns where some dtypes are made.
        flat = copy.view(base.dtype.__get__(tensor))
        numbers = flat.reshape(shape) if is_gathered else flat.as_strided(shape, strides)
        if base.is_neg(tensor):
            numbers = torch._neg_view(numbers)
        return torch._conj(numbers) if base.is_conj(tensor) else numbers

    return steady


def _runs(
    begin: int, shape: Sequence[int], strides: Sequence[int], size: int, most: int
) -> Iterator[Part]:
    """The contiguous pieces of an array; none if there are too many."""
    outer = list(zip(shape, strides, strict=True))
    run = 1
    while outer and (outer[-1][0] == 1 or outer[-1][1] == run):
        run *= outer.pop()[0]
    count = 1
    for length, _ in outer:
        count *= length
    if count > most:
        return
    starts = [begin]
    for length, stride in outer:
        starts = [start + number * stride * size for start in starts for number in range(length)]
    for start in starts:
        yield start, run * size


def read_memory(parts: Sequence[Part], target: int) -> bool:
    """Copy pieces of memory, one after the other, to an address; return whether all are there."""
    return _reader(os.getpid())(parts, target)


class _Vector(ctypes.Structure):
    """``struct iovec``."""

    _fields_ = (("start", ctypes.c_void_p), ("length", ctypes.c_size_t))


class _Kernel:
    """Has the kernel copy this process's memory, which fails if the memory is gone."""

    def __init__(self, process: int) -> None:
        self._process: Final = process
        library = ctypes.CDLL(None, use_errno=True)
        self._read: Final = library.process_vm_readv
        self._read.restype = ctypes.c_ssize_t
        vectors = (ctypes.POINTER(_Vector), ctypes.c_ulong)
        self._read.argtypes = (ctypes.c_int, *vectors, *vectors, ctypes.c_ulong)

    def __call__(self, parts: Sequence[Part], target: int) -> bool:
        for group in _groups(parts):
            of = (_Vector * len(group))(*(_Vector(*part) for part in group))
            length = sum(each for _, each in group)
            to = _Vector(target, length)
            if self._read(self._process, to, 1, of, len(group), 0) != length:
                return False
            target += length
        return True

    def works(self) -> bool:
        """Return whether the system call is allowed: a container can forbid it."""
        found = ctypes.c_char(b"0")
        to = ctypes.addressof(found)
        probe = ctypes.c_char(b"1")
        return (
            self([(ctypes.addressof(probe), 1)], to)
            and found.value == b"1"
            and not self([(1, 1)], to)
            and ctypes.get_errno() == EFAULT
        )


def _groups(parts: Sequence[Part]) -> Iterator[list[Part]]:
    """Pieces in groups of the size that the kernel reads in one call."""
    group: list[Part] = []
    left = _MOST_BYTES
    for start, length in parts:
        while length:
            if not left or len(group) == _MOST_PARTS:
                yield group
                group, left = [], _MOST_BYTES
            part = min(length, left)
            group.append((start, part))
            start, length, left = start + part, length - part, left - part
    if group:
        yield group


def _read_locked(parts: Sequence[Part], target: int) -> bool:
    """Copy memory under the interpreter's lock, so that no other Python code can free it."""
    for start, length in parts:
        kind = ctypes.c_char * length
        memoryview(kind.from_address(target))[:] = memoryview(kind.from_address(start))
        target += length
    return True


@cache
def _reader(process: int) -> Read:
    """The reader of a process, by process id, as a fork has its own."""
    if not sys.platform.startswith("linux"):
        return _read_locked
    kernel = _Kernel(process)
    return kernel if kernel.works() else _read_locked
