"""Reads a few bytes of an array's memory, to notice changes of its content.

Up to a few pages are read whole; larger arrays in blocks spread over them, so that a change in
between may be missed. Bytes are compared, so NaN equals NaN, and any dtype will do. Nothing
is computed: no mode, graph, generator or recorder notices.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from math import prod
from typing import Any, Final, NamedTuple

from shapetrace.inspecting.stable_reads import read_memory


class SampleLayout(NamedTuple):
    """Which bytes to read of arrays with one memory layout."""

    blocks: tuple[tuple[int, Any], ...]
    """Offset from the first item, and a ctypes type of the block's size, which reads much faster
    than ``string_at``."""
    is_whole: bool
    """Whether the blocks cover the whole array."""
    reach: int
    """Offset from the first item to the end of the last block."""


def read(address: int, layout: SampleLayout) -> bytes:
    """Read the blocks of an array whose first item is at an address."""
    blocks = layout.blocks
    if len(blocks) == 1:
        start, kind = blocks[0]
        content: bytes = kind.from_address(address + start).raw
        return content
    return b"".join([kind.from_address(address + at).raw for at, kind in blocks])


def read_steadily(address: int, layout: SampleLayout) -> bytes | None:
    """Like ``read``, where another thread may free the memory; None if it has."""
    parts = [(address + at, ctypes.sizeof(kind)) for at, kind in layout.blocks]
    content = ctypes.create_string_buffer(sum(size for _, size in parts))
    return content.raw if read_memory(parts, ctypes.addressof(content)) else None


class Extent(NamedTuple):
    """How much is read."""

    whole: int
    """Up to this many bytes are read whole."""
    rows: int
    """Up to this many separate rows are read whole."""
    blocks: int
    """Number of blocks read of larger arrays."""


UNCOUNTED: Final = Extent(32 << 10, 256, 32)
"""For memory without a version counter: reading is the only way to notice changes."""
COUNTED: Final = Extent(2 << 10, 4, 1)
"""For tensors that are known to be new, or written to."""
_BLOCK: Final = 64


@lru_cache(maxsize=1024)
def layout_of(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int, extent: Extent
) -> SampleLayout:
    """Which bytes to read, given strides in bytes."""
    if 0 in shape:
        return SampleLayout((), True, 0)
    rows, length = _rows(shape, strides, itemsize)
    count = prod(size for size, _ in rows)
    if count == 1:
        blocks, is_whole = _of_one(length, extent)
    elif count <= extent.rows and count * length <= extent.whole:
        blocks = tuple((_offset(rows, at), length) for at in range(count))
        is_whole = True
    else:
        blocks, is_whole = _of_rows(rows, count, length, extent), False
    reach = max(at + size for at, size in blocks)
    return SampleLayout(tuple((at, ctypes.c_char * size) for at, size in blocks), is_whole, reach)


def _rows(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int
) -> tuple[list[tuple[int, int]], int]:
    """Sizes and strides of the outer axes, and the length of a contiguous row.

    Axes with a stride of 0 are left out, as they show the same memory again.
    """
    axes = [(size, step) for size, step in zip(shape, strides, strict=True) if size > 1 and step]
    axes.sort(key=lambda axis: -abs(axis[1]))
    joined: list[tuple[int, int]] = []
    for size, step in axes:
        if joined and joined[-1][1] == size * step:
            joined[-1] = (joined[-1][0] * size, step)
        else:
            joined.append((size, step))
    if joined and joined[-1][1] == itemsize:
        return joined[:-1], joined[-1][0] * itemsize
    return joined, itemsize


def _of_one(length: int, extent: Extent) -> tuple[tuple[tuple[int, int], ...], bool]:
    if length <= extent.whole:
        return ((0, length),), True
    last, count = length - _BLOCK, extent.blocks
    if count == 1:
        return ((last // 2, _BLOCK),), False
    return tuple((last * at // (count - 1), _BLOCK) for at in range(count)), False


def _of_rows(
    rows: list[tuple[int, int]], count: int, length: int, extent: Extent
) -> tuple[tuple[int, int], ...]:
    """Blocks in some of the rows."""
    taken, chosen = min(length, _BLOCK), min(extent.blocks, count)
    blocks = []
    for number in range(chosen):
        row = (count - 1) * number // max(chosen - 1, 1)
        within = (length - taken) * (number % 4) // 3
        blocks.append((_offset(rows, row) + within, taken))
    return tuple(dict.fromkeys(blocks))


def _offset(rows: list[tuple[int, int]], number: int) -> int:
    """Offset of a row, by its index."""
    offset = 0
    for size, step in reversed(rows):
        number, at = divmod(number, size)
        offset += at * step
    return offset
