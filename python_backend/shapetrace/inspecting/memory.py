"""Checks that the memory of a tensor or a NumPy array can still be read.

Reading lost memory crashes the process, and the program itself may never have read it:

- An array keeps its base object alive, but not always that object's memory: arrays, and tensors
  made of them, outlive a closed SharedMemory, a closed memmap or an emptied bytearray.
- The storage of a tensor may have been freed or shrunk, as by FSDP.
- A mapped file may have been truncated.

``stable_reads`` handles memory that is freed during the read.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from operator import mul
from typing import Any, Final

from shapetrace._asynchronous import is_asynchronous
from shapetrace._classes import classes_of, is_kind, name_of
from shapetrace.inspecting.attributes import own_attributes

GIVEN_BACK: Final = "its memory was given back"
GONE: Final = "its memory was another's, and is gone"
ARRAY_GONE: Final = "the memory that the array shows is another's, and may be gone"


def owns_memory(array: Any, arrays: Any) -> bool:
    """Return whether an array owns its memory, which ``resize`` may free."""
    return arrays.base.__get__(array) is None and bool(arrays.flags.__get__(array).owndata)


def is_held(array: Any, arrays: Any) -> bool:
    """Return whether the memory surely lives as long as the array or scalar.

    False for mapped files, though they may be readable: reading would fetch pages from disk, and
    crashes if the file was truncated.
    """
    array = _array_shown(array, arrays)
    if array is None:
        return True
    while True:
        base = _made_of(array, arrays)
        if base is None:
            return bool(arrays.flags.__get__(array).owndata)
        if not is_kind(type(base), arrays):
            break
        array = base
    kind = type(base)
    if kind is memoryview:
        return _is_exported(base)
    if kind is bytes or is_kind(kind, _record_type()):
        return True
    return is_kind(kind, getattr(sys.modules.get("torch"), "Tensor", None))


def may_be_read(array: Any, arrays: Any) -> bool:
    """Return whether the numbers can be read now, also from mapped memory.

    For explicit requests of the user: it takes system calls.
    """
    if is_held(array, arrays):
        return True
    array = base = _array_shown(array, arrays)
    while is_kind(type(base), arrays):
        base = _made_of(base, arrays)
    mapping = getattr(sys.modules.get("mmap"), "mmap", None)
    # Capsules come from DLPack and C++ libraries.
    if name_of(type(base)) == "PyCapsule" or (
        mapping is not None and type(base) is mapping and not base.closed
    ):
        return is_mapped(*_extent(array, arrays))
    return False


def _extent(array: Any, arrays: Any) -> tuple[int, int]:
    """The address of an array's memory, and the number of bytes it spans."""
    address: int = arrays.__array_interface__.__get__(array)["data"][0]
    shape, strides = arrays.shape.__get__(array), arrays.strides.__get__(array)
    if 0 in shape:
        return address, 0
    steps = [(size - 1) * stride for size, stride in zip(shape, strides, strict=True)]
    before = sum(step for step in steps if step < 0)
    after = sum(step for step in steps if step > 0)
    return address + before, after - before + arrays.dtype.__get__(array).itemsize


def _made_of(array: Any, arrays: Any) -> Any:
    """The object whose memory an array shows; None if it owns its memory."""
    base = arrays.base.__get__(array)
    kind = type(base)
    if name_of(kind) == "DummyArray" and kind.__module__.startswith("numpy."):
        return base.base  # stands between an array and windows of it
    if is_kind(kind, _record_type()) and base.base is not None:
        return base.base
    return base


def _array_shown(value: Any, arrays: Any) -> Any:
    """The array whose memory a record shows; None for scalars that own their data."""
    if is_kind(type(value), arrays):
        return value
    record: Any = _record_type()
    shown = record.base.__get__(value) if is_kind(type(value), record) else None
    return shown if is_kind(type(shown), arrays) else None


def _record_type() -> type | None:
    """The type of scalars that show their array's memory."""
    return getattr(sys.modules.get("numpy"), "void", None)


def _is_exported(view: memoryview) -> bool:
    try:
        return view.nbytes >= 0
    except ValueError:  # released
        return False


def is_mapped(address: int, length: int) -> bool:
    """Return whether the process can read a range of bytes, by asking the kernel about both ends.

    True on Windows, where it cannot be asked.
    """
    if length <= 0:
        return True
    if not address:
        return False
    synchronize = _msync()
    if synchronize is None:
        return True
    first = address - address % _PAGE
    if synchronize(first, address + length - first, _ASYNCHRONOUSLY):
        return False  # A page in between is not mapped.
    try:
        reader, writer = os.pipe()
    except OSError as error:
        if is_asynchronous(error):
            raise
        return False
    try:
        # Of a truncated mapped file the end is missing.
        for place in (address, address + length - 1):
            os.write(writer, (ctypes.c_char * 1).from_address(place))
    except OSError as error:
        if is_asynchronous(error):
            raise
        return False
    finally:
        os.close(reader)
        os.close(writer)
    return True


_ASYNCHRONOUSLY: Final = 1
"""``MS_ASYNC``, with which ``msync`` checks the mapping and does nothing else."""
_PAGE: Final = getattr(os, "sysconf", lambda name: 4096)("SC_PAGESIZE")


@cache
def _msync() -> Callable[[int, int, int], int] | None:
    if sys.platform == "win32":
        return None
    function = ctypes.PyDLL(None).msync
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    function.restype = ctypes.c_int
    return function


@cache
def lost_memory_of(torch: Any) -> Callable[[Any], str | None]:
    """Return a function that gives the reason why a tensor's memory cannot be read, or None.

    Call it where no mode and no tensor class can intercept it. The caller must know that the tensor
    has data, which one on the device meta has not.
    """
    base: Any = torch._C.TensorBase
    plain = torch.Tensor
    storage_of, is_contiguous = base.untyped_storage, base.is_contiguous
    size_of, offset_of = base.nbytes.__get__, base.storage_offset
    is_cpu = base.is_cpu.__get__
    address_of = address_of_data(torch)

    def lost_memory(tensor: Any) -> str | None:
        kind = type(tensor)
        if kind is not plain and kind.__torch_dispatch__ is not plain.__torch_dispatch__:
            return _first_lost(_tensors_held_by(tensor, plain), lost_memory)
        try:
            storage = storage_of(tensor)
        except (RuntimeError, ValueError) as error:
            if is_asynchronous(error):
                raise
            return _first_lost(_parts_of(tensor, torch), lost_memory)
        # Each call counts: this runs for every captured value.
        size = size_of(tensor) if is_contiguous(tensor) else reach_of(tensor, base)
        if not size:
            return None
        start = offset_of(tensor)
        if start:
            start *= base.element_size(tensor)
        if start + size > storage.nbytes():
            return GIVEN_BACK
        if not is_cpu(tensor):
            return None
        address = address_of(tensor)
        if not address:
            return None if base._is_zerotensor(tensor) else GIVEN_BACK
        if storage.resizable() or is_mapped(address + start, size):
            return None
        return GONE

    return lost_memory


def address_of_data(torch: Any) -> Callable[[Any], int]:
    """Return a function that gives the address of a tensor's storage.

    Not data_ptr(), which makes a lazily cloned tensor copy its data.
    """
    found: Callable[[Any], int] | None = getattr(torch._C, "_data_address", None)
    if found is not None:
        return found
    base, is_lazy = torch._C.TensorBase, torch._C._is_cow_tensor

    def address_of(tensor: Any) -> int:
        # A lazy copy shows memory that lives as long as the copy.
        return 1 if is_lazy(tensor) else int(base.untyped_storage(tensor).data_ptr())

    return address_of


def reach_of(tensor: Any, base: Any) -> int:
    """The number of bytes that a strided tensor spans."""
    strides = base.stride(tensor)
    # The last item of a dimension is at stride times (size - 1).
    last = sum(map(mul, base.shape.__get__(tensor), strides)) - sum(strides)
    reach: int = (last + 1) * base.element_size(tensor)
    return reach


def _first_lost(tensors: Iterator[Any], lost_memory: Callable[[Any], str | None]) -> str | None:
    return next(filter(None, map(lost_memory, tensors)), None)


_SPARSE_PARTS: Final = {
    "torch.sparse_coo": ("_indices", "_values"),
    "torch.sparse_csr": ("crow_indices", "col_indices", "values"),
    "torch.sparse_bsr": ("crow_indices", "col_indices", "values"),
    "torch.sparse_csc": ("ccol_indices", "row_indices", "values"),
    "torch.sparse_bsc": ("ccol_indices", "row_indices", "values"),
}


def _parts_of(tensor: Any, torch: Any) -> Iterator[Any]:
    """The tensors that a sparse one consists of."""
    base = torch._C.TensorBase
    for name in _SPARSE_PARTS.get(str(base.layout.__get__(tensor)), ()):
        yield getattr(base, name)(tensor)


def _tensors_held_by(tensor: Any, plain: type) -> Iterator[Any]:
    """The tensors among the attributes of a tensor subclass, such as a wrapper."""
    held = [*own_attributes(tensor, classes_of(type(tensor))).values()]
    for value in held:
        if is_kind(type(value), plain) and value is not tensor:
            yield value
