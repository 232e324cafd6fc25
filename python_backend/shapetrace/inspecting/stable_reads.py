"""Reading memory that another thread may free meanwhile.

torch lets go of the interpreter's lock while it reads, and another thread may make the storage
smaller just then, as FSDP does. So where there is another thread, the numbers are copied first by
the kernel, who refuses to read what is not there, where reading it ourselves ends the process.
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
"""Where some memory begins, and how many bytes of it there are."""
Read: TypeAlias = Callable[[Sequence[Part], int], bool]
"""Copies parts of memory, one after the other, to an address, if all of them are there."""

_MOST_BYTES: Final = 1 << 30
"""The kernel reads less than two gigabytes at once."""
_MOST_PARTS: Final = 1024
_BYTES_FOR_A_PART: Final = 4096
"""Naming one part more takes about as long as reading so many bytes."""


class MemoryGoneError(Exception):
    """Another thread has taken the memory of a tensor away while it was read: says how."""


@cache
def steady_of(torch: Any) -> Callable[[Any], Any]:
    """A function that returns a tensor with the same numbers, which nobody can take away.

    That is the tensor itself where this is the only thread, or where its numbers do not lie in the
    CPU's memory at strides. It is called where no mode and no class of the program's hears of it,
    and raises ``MemoryGoneError`` where the memory is gone.
    """
    base, plain = torch._C.TensorBase, torch.Tensor
    is_cpu, layout_of = base.is_cpu.__get__, base.layout.__get__
    is_quantized, is_nested = base.is_quantized.__get__, base.is_nested.__get__
    address_of, is_lazy = address_of_data(torch), torch._C._is_cow_tensor

    def steady(tensor: Any) -> Any:
        if (
            len(_current_frames()) == 1  # ours has no frame while it waits
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
        # The tensor may be given another storage as well.
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
        # What was read is nothing of the tensor's where others have got the memory since.
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
    """The pieces without gaps that an array consists of; none where these are too many."""
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
    """Copy parts of memory, one after the other, to an address; whether all of it is there."""
    return _reader(os.getpid())(parts, target)


class _Vector(ctypes.Structure):
    """``struct iovec``."""

    _fields_ = (("start", ctypes.c_void_p), ("length", ctypes.c_size_t))


class _Kernel:
    """Asks the kernel to copy memory of this process, who looks whether it is there."""

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
        """Whether it may be asked here: a container can forbid it."""
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
    """So much at once as the kernel reads at most."""
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
    """Copy memory and keep the interpreter's lock: no other Python code can free it just then."""
    for start, length in parts:
        kind = ctypes.c_char * length
        memoryview(kind.from_address(target))[:] = memoryview(kind.from_address(start))
        target += length
    return True


@cache
def _reader(process: int) -> Read:
    """How memory is read in a process, a forked one of which has another number."""
    if not sys.platform.startswith("linux"):
        return _read_locked
    kernel = _Kernel(process)
    return kernel if kernel.works() else _read_locked
