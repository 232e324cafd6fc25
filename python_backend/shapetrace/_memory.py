"""Whether the memory that a NumPy array shows is surely there.

An array keeps what it was made of, and not always that one's memory: a closed SharedMemory, a
closed memmap or an emptied bytearray leaves arrays behind that end the process of whoever reads
them, as the program does not.
"""

from __future__ import annotations

import sys
from typing import Any

from shapetrace._classes import is_kind, name_of


def owns_memory(array: Any, arrays: Any) -> bool:
    """Whether an array has memory of its own, which it may let go of by ``resize``."""
    return arrays.base.__get__(array) is None and bool(arrays.flags.__get__(array).owndata)


def is_held(array: Any, arrays: Any) -> bool:
    """Whether nobody can have let go of the memory while the array is there.

    Memory of mapped files does not count, though it may be there: reading would fetch it from a
    disk, and ends the process where the file has been cut.
    """
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
    """The same where somebody has asked for the numbers, however long that takes."""
    if is_held(array, arrays):
        return True
    base = array
    while is_kind(type(base), arrays):
        base = _made_of(base, arrays)
    if name_of(type(base)) == "PyCapsule":
        return True  # Nothing in Python can empty it: arrays of DLPack and of libraries in C++.
    mapping = getattr(sys.modules.get("mmap"), "mmap", None)
    return mapping is not None and type(base) is mapping and not base.closed


def _made_of(array: Any, arrays: Any) -> Any:
    """What an array shows the memory of; None where that is its own."""
    base = arrays.base.__get__(array)
    kind = type(base)
    if name_of(kind) == "DummyArray" and kind.__module__.startswith("numpy."):
        return base.base  # Stands between windows or other strides and the array these are of.
    if is_kind(kind, _record_type()) and base.base is not None:
        return base.base
    return base


def _record_type() -> type | None:
    """Of scalars that show the memory of the array that they are of."""
    return getattr(sys.modules.get("numpy"), "void", None)


def _is_exported(view: memoryview) -> bool:
    try:
        return view.nbytes >= 0
    except ValueError:  # released
        return False
