"""Moments of what is in memory: how many numbers there are, their sums, the least and the largest.

The numbers are taken in the order that their places in the tensor have, a *row* of so many at a
time. Each row is summed up by one thread in float32, or in float64 where the numbers are; the rows
in float64. So the result is the same to the bit however many threads there are, and however the
tensor lies in memory, but for very large ones that are not contiguous.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from typing import Any, Final

import torch
from torch import Tensor

ROW: Final = 1024
PIECE: Final = 1 << 20
"""Numbers that are read at a time: while they are in the processor's cache, four times costs little
more than once."""

MOST_COPIED: Final = 1 << 22
"""Numbers that are put in order at a time where they lie in another one."""

MOST_IN_ROW: Final = 8 * ROW
"""Fewer numbers are one row."""

SMALL_PIECE: Final = 31 * ROW
"""Fewer numbers than torch shares out among threads."""

_WIDE: Final = frozenset({torch.float32, torch.float64})
_HOME: Final = os.getpid()


class Moments:
    """Sums over the finite numbers, and what else there is."""

    __slots__ = ("high", "low", "nan", "negative", "positive", "squares", "total")

    def __init__(self) -> None:
        self.total = 0.0
        self.squares = 0.0
        self.low = math.inf
        self.high = -math.inf
        self.nan = 0
        self.positive = 0
        self.negative = 0

    def add(self, numbers: Tensor, times: int = 1) -> None:
        """Count in real numbers that lie one after the other, in a row of any length."""
        for piece in pieces(numbers):
            wide = piece if piece.dtype in _WIDE else piece.to(torch.float32)
            self._add(wide, times)

    def join(self, sums: list[float], times: int) -> None:
        """Count in sums that were made elsewhere."""
        total, squares, low, high, nan, positive, negative = sums
        self.total += total * times
        self.squares += squares * times
        self.low = min(self.low, low)
        self.high = max(self.high, high)
        self.nan += int(nan) * times
        self.positive += int(positive) * times
        self.negative += int(negative) * times

    def _add(self, numbers: Tensor, times: int) -> None:
        total, squares, low, high = _sums(numbers)
        if not math.isfinite(total + squares):
            if not (math.isfinite(low) and math.isfinite(high)):
                self._count_others(numbers, times)
                low = torch.nan_to_num(numbers, math.inf, math.inf, math.inf).amin().item()
                high = torch.nan_to_num(numbers, -math.inf, -math.inf, -math.inf).amax().item()
                numbers = torch.nan_to_num(numbers, 0.0, 0.0, 0.0)
                total, squares, _, _ = _sums(numbers)
            if not math.isfinite(total + squares):  # more than float32 can hold
                total, squares, _, _ = _sums(numbers.to(torch.float64))
        self.total += total * times
        self.squares += squares * times
        self.low = min(self.low, low)
        self.high = max(self.high, high)

    def _count_others(self, numbers: Tensor, times: int) -> None:
        self.nan += int(torch.isnan(numbers).count_nonzero()) * times
        self.positive += int((numbers == math.inf).count_nonzero()) * times
        self.negative += int((numbers == -math.inf).count_nonzero()) * times


def in_order(tensor: Tensor) -> Iterator[tuple[Tensor, int]]:
    """The numbers of a tensor one after the other, in parts, each with how often it is there."""
    if tensor.is_contiguous():
        yield tensor.view(-1), 1
        return
    times = 1
    for dimension, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        if stride == 0 and size > 1:
            times *= size
            tensor = tensor.narrow(dimension, 0, 1)
    for part in _halves(tensor):
        yield part.reshape(-1), times


def _halves(tensor: Tensor) -> Iterator[Tensor]:
    if tensor.numel() <= MOST_COPIED:
        yield tensor
        return
    sizes = tensor.shape
    largest = max(range(len(sizes)), key=sizes.__getitem__)
    half = sizes[largest] // 2
    yield from _halves(tensor.narrow(largest, 0, half))
    yield from _halves(tensor.narrow(largest, half, sizes[largest] - half))


def pieces(numbers: Tensor, most: int = PIECE) -> Iterator[Tensor]:
    """A row of numbers in parts."""
    count = numbers.numel()
    if count <= most:
        yield numbers
        return
    for start in range(0, count, most):
        yield numbers[start : start + most]


def _sums(numbers: Any) -> tuple[float, float, float, float]:
    """Sum, sum of squares, least and largest of some numbers."""
    count = numbers.numel()
    rest = count % ROW
    if count < MOST_IN_ROW:
        alone: tuple[float, float, float, float] = _sums_of_row(numbers)
        return alone
    head = numbers[: count - rest].view(-1, ROW)
    if count <= SMALL_PIECE or not _has_forked():
        sums = head.sum(1)
        norms = torch.linalg.vector_norm(head, dim=1)
        lows = head.amin(1)
        highs = head.amax(1)
    else:
        # The threads that torch would use are not in this process.
        parts = head.split(SMALL_PIECE // ROW)
        sums = torch.cat([part.sum(1) for part in parts])
        norms = torch.cat([torch.linalg.vector_norm(part, dim=1) for part in parts])
        lows = torch.cat([part.amin(1) for part in parts])
        highs = torch.cat([part.amax(1) for part in parts])
    norms = norms.to(torch.float64)
    total: Any = sums.sum(dtype=torch.float64).item()
    squares: Any = torch.dot(norms, norms).item()
    low: Any = lows.amin().item()
    high: Any = highs.amax().item()
    if rest:
        more, more_squares, lower, higher = _sums_of_row(numbers[count - rest :])
        if lower != lower:  # not a number, as the sum is then
            low = lower
        return total + more, squares + more_squares, min(low, lower), max(high, higher)
    return total, squares, low, high


def _sums_of_row(numbers: Tensor) -> Any:
    wide = numbers.to(torch.float64)
    low, high = torch.aminmax(wide)
    return wide.sum().item(), torch.dot(wide, wide).item(), low.item(), high.item()


def _has_forked() -> bool:
    """Whether this process is a fork, or may be one."""
    if os.getpid() != _HOME:
        return True
    processes = sys.modules.get("multiprocessing.process")
    return processes is not None and processes.parent_process() is not None
