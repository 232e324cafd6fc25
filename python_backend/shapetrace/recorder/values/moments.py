"""Moments of what is in memory: how many numbers there are, their sums, the least and the largest.

The numbers are taken in the order that their places in the tensor have, a *row* of so many at a
time. Each row is summed up by one thread in float32, or in float64 where the numbers are; the rows
exactly. So the result is the same to the bit however many threads there are, and however the
tensor lies in memory; but for those that are not contiguous and very large, or large in a process
that was forked, which agree to some seven digits.
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

MOST_IN_ROW: Final = 8 * ROW
"""A tensor of fewer numbers is one row."""

PIECE: Final = 1 << 20
"""Numbers that are read at a time: while they are in the processor's cache, four times costs little
more than once."""

MOST_COPIED: Final = 1 << 22
"""Numbers that are put in order at a time where they lie in another one."""

SMALL_PIECE: Final = 31 * ROW
"""Fewer numbers than torch shares out among threads."""

_WIDE: Final = frozenset({torch.float32, torch.float64})
_HOME: Final = os.getpid()

_Sums = tuple[list[float], list[float], float, float]
"""Of each row the sum and the sum of squares; the least and the largest number."""


class Moments:
    """Sums over the finite numbers, and what else there is."""

    __slots__ = ("high", "low", "nan", "negative", "positive", "squares", "totals")

    def __init__(self) -> None:
        self.totals: list[float] = []
        """Of each row; nothing is lost when these are added up."""
        self.squares: list[float] = []
        self.low = math.inf
        self.high = -math.inf
        self.nan = 0
        self.positive = 0
        self.negative = 0

    def add(self, numbers: Tensor, times: int = 1) -> None:
        """Count in real numbers that lie one after the other: a whole tensor, or a large part."""
        one_row = numbers.numel() < MOST_IN_ROW
        for piece in pieces(numbers):
            self._add(piece, one_row, times)

    def join(self, sums: list[float], times: int) -> None:
        """Count in sums that were made elsewhere."""
        total, squares, low, high, nan, positive, negative = sums
        self._join(([total], [squares], low, high), times)
        self.nan += int(nan) * times
        self.positive += int(positive) * times
        self.negative += int(negative) * times

    def _add(self, piece: Tensor, one_row: bool, times: int) -> None:
        numbers = piece if piece.dtype in _WIDE else piece.to(_wide(piece))
        sums = _sums(numbers, one_row)
        if not _are_finite(sums):
            low, high = sums[2:]
            if not (math.isfinite(low) and math.isfinite(high)):
                self._count_others(numbers, times)
                low = torch.nan_to_num(numbers, math.inf, math.inf, math.inf).amin().item()
                high = torch.nan_to_num(numbers, -math.inf, -math.inf, -math.inf).amax().item()
                numbers = torch.nan_to_num(numbers, 0.0, 0.0, 0.0)
                sums = _sums(numbers, one_row)
            if not _are_finite(sums):  # more than float32 can hold
                sums = _sums(numbers.to(torch.float64), one_row)
            sums = (*sums[:2], low, high)
        self._join(sums, times)

    def _join(self, sums: _Sums, times: int) -> None:
        totals, squares, low, high = sums
        self.totals += totals if times == 1 else [total * times for total in totals]
        self.squares += squares if times == 1 else [square * times for square in squares]
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
    most = SMALL_PIECE if tensor.is_cpu and has_forked() else MOST_COPIED
    for part in _halves(tensor, most):
        yield part.reshape(-1), times


def pieces(numbers: Tensor) -> Iterator[Tensor]:
    """A row of numbers in parts that are read at a time."""
    count = numbers.numel()
    if count <= SMALL_PIECE:
        yield numbers
        return
    most = SMALL_PIECE if has_forked() else PIECE
    for start in range(0, count, most):
        yield numbers[start : start + most]


def has_forked() -> bool:
    """Whether this process is a fork, or may be: threads that torch counts on may be missing."""
    if os.getpid() != _HOME:
        return True
    processes = sys.modules.get("multiprocessing.process")
    return processes is not None and processes.parent_process() is not None


def _halves(tensor: Tensor, most: int) -> Iterator[Tensor]:
    if tensor.numel() <= most:
        yield tensor
        return
    sizes = tensor.shape
    largest = max(range(len(sizes)), key=sizes.__getitem__)
    half = sizes[largest] // 2
    yield from _halves(tensor.narrow(largest, 0, half), most)
    yield from _halves(tensor.narrow(largest, half, sizes[largest] - half), most)


def _wide(piece: Tensor) -> torch.dtype:
    return torch.float32 if piece.dtype.is_floating_point else torch.float64


def _sums(numbers: Any, one_row: bool) -> _Sums:
    count = numbers.numel()
    rest = 0 if one_row else count % ROW
    totals: list[float] = []
    squares: list[float] = []
    low, high = math.inf, -math.inf
    if one_row or rest:
        row = numbers[count - rest :] if rest else numbers
        wide = row.to(torch.float64)
        least, largest = torch.aminmax(wide)
        totals = [wide.sum().item()]
        squares = [torch.dot(wide, wide).item()]
        low, high = least.item(), largest.item()
    if one_row or rest == count:
        return totals, squares, low, high
    head = numbers[: count - rest].view(-1, ROW)
    norms = torch.linalg.vector_norm(head, dim=1).to(torch.float64)
    totals += head.sum(1).tolist()
    squares += (norms * norms).tolist()
    # A number that is none shows in the sums as well.
    return (
        totals,
        squares,
        min(low, head.amin(1).amin().item()),
        max(high, head.amax(1).amax().item()),
    )


def _are_finite(sums: _Sums) -> bool:
    totals, squares, low, high = sums
    return math.isfinite(low) and math.isfinite(high) and math.isfinite(sum(totals) + sum(squares))
