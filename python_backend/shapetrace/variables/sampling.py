"""Reading a few bytes of an array's memory, to tell whether its content is another.

Up to a few pages are read whole; of more, blocks that are spread over it, so that a change in
between may stay unseen. Bytes are compared, so a NaN is as it was, and any dtype will do. Nothing
is computed: no mode, graph, generator or recorder notices.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Final, NamedTuple

MOST_WHOLE: Final = 32 << 10
"""So many bytes are read whole."""
_BLOCKS: Final = 32
_BLOCK: Final = 64
_MOST_ROWS: Final = 256
"""So many rows that do not lie next to each other are read whole."""

_string_at: Final[Callable[[int, int], bytes]] = ctypes.string_at


class Layout(NamedTuple):
    """Which bytes are read of arrays that lie in memory in the same way."""

    blocks: tuple[tuple[int, int], ...]
    """Where each begins, from the first item on, and how long it is."""
    is_whole: bool
    """Whether that is all there is."""
    reach: int
    """How many bytes after the first item's beginning the last byte read is at most."""


class Sample(NamedTuple):
    """What was read."""

    layout: Layout
    content: bytes


def read(address: int, layout: Layout) -> Sample:
    """Read an array whose first item is at an address."""
    blocks = layout.blocks
    if len(blocks) == 1:
        start, length = blocks[0]
        return Sample(layout, _string_at(address + start, length))
    return Sample(layout, b"".join([_string_at(address + at, size) for at, size in blocks]))


@lru_cache(maxsize=1024)
def layout_of_items(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> Layout:
    """Which bytes to read, given strides in items."""
    return layout_of(shape, tuple(stride * itemsize for stride in strides), itemsize)


@lru_cache(maxsize=1024)
def layout_of(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> Layout:
    """Which bytes to read, given strides in bytes."""
    if 0 in shape:
        return Layout((), True, 0)
    rows, length = _rows(shape, strides, itemsize)
    count = prod(size for size, _ in rows)
    if count == 1:
        blocks, is_whole = _of_one(length)
    elif count <= _MOST_ROWS and count * length <= MOST_WHOLE:
        blocks = tuple((_offset(rows, at), length) for at in range(count))
        is_whole = True
    else:
        blocks, is_whole = _of_rows(rows, count, length), False
    return Layout(blocks, is_whole, max(at + size for at, size in blocks))


def _rows(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int
) -> tuple[list[tuple[int, int]], int]:
    """Sizes and strides of rows, and the length of each, which lies in one piece.

    What is repeated is there once.
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


def _of_one(length: int) -> tuple[tuple[tuple[int, int], ...], bool]:
    if length <= MOST_WHOLE:
        return ((0, length),), True
    last = length - _BLOCK
    return tuple((last * at // (_BLOCKS - 1), _BLOCK) for at in range(_BLOCKS)), False


def _of_rows(rows: list[tuple[int, int]], count: int, length: int) -> tuple[tuple[int, int], ...]:
    """Pieces of some of the rows."""
    taken, chosen = min(length, _BLOCK), min(_BLOCKS, count)
    blocks = []
    for number in range(chosen):
        row = (count - 1) * number // max(chosen - 1, 1)
        within = (length - taken) * (number % 4) // 3
        blocks.append((_offset(rows, row) + within, taken))
    return tuple(dict.fromkeys(blocks))


def _offset(rows: list[tuple[int, int]], number: int) -> int:
    """Where the so-manieth row begins."""
    offset = 0
    for size, step in reversed(rows):
        number, at = divmod(number, size)
        offset += at * step
    return offset
