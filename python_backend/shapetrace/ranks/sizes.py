"""About how much memory captured values take."""

from __future__ import annotations

from typing import Any

from torch._C import DisableTorchFunction

from shapetrace._asynchronous import is_asynchronous
from shapetrace._exception_table import leaving_surely
from shapetrace.capture.results import ResultEntry

_DEEPEST = 8


@leaving_surely
def size_of(entries: dict[str, ResultEntry]) -> int:
    """Bytes of the tensors, arrays and texts in some entries; other objects count little."""
    with DisableTorchFunction():  # Asking a tensor is a call, too.
        return sum(_size(value) for entry in entries.values() for value in entry.values)


def _size(value: Any, depth: int = 0) -> int:
    if depth > _DEEPEST:
        return 0
    match value:
        case str() | bytes() | bytearray():
            return len(value)
        case dict():
            return sum(_size(item, depth + 1) for item in value.values())
        case list() | tuple() | set() | frozenset():
            return sum(_size(item, depth + 1) for item in value)
    try:
        size = getattr(value, "nbytes", 0)
    except Exception as error:
        if is_asynchronous(error):
            raise
        return 0  # A property of the program's own.
    return size if isinstance(size, int) else 0
