"""Whether the memory that a NumPy array shows is surely there.

An array keeps what it was made of, and not always that one's memory: a closed SharedMemory, a
closed memmap or an emptied bytearray leaves arrays behind that end the process of whoever reads
them, as the program does not.
"""

from __future__ import annotations

import sys
from typing import Any

from shapetrace.panes.loaded import is_kind
from shapetrace.variables.loaded import loaded_tensors


def owns_memory(array: Any, arrays: Any) -> bool:
    """Whether an array has memory of its own, which it may let go of by ``resize``."""
    return arrays.base.__get__(array) is None and bool(arrays.flags.__get__(array).owndata)


def is_held(array: Any, arrays: Any) -> bool:
    """Whether nobody can have let go of the memory while the array is there.

    Memory of mapped files does not count, though it may be there: reading would fetch it from a
    disk, and ends the process where the file has been cut.
    """
    while True:
        base = arrays.base.__get__(array)
        if base is None:
            return bool(arrays.flags.__get__(array).owndata)
        if not is_kind(type(base), arrays):
            break
        array = base
    kind = type(base)
    if kind is memoryview:
        return _is_exported(base)
    if kind is bytes:
        return True
    tensors = loaded_tensors()
    return tensors is not None and is_kind(kind, tensors.tensor)


def may_be_read(array: Any, arrays: Any) -> bool:
    """The same where somebody has asked for the numbers, however long that takes."""
    if is_held(array, arrays):
        return True
    base = array
    while is_kind(type(base), arrays):
        base = arrays.base.__get__(base)
    mapping = getattr(sys.modules.get("mmap"), "mmap", None)
    return mapping is not None and type(base) is mapping and not base.closed


def _is_exported(view: memoryview) -> bool:
    try:
        return view.nbytes >= 0
    except ValueError:  # released
        return False
