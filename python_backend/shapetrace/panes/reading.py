"""What is in a tensor, read only because somebody opened it, and never for longer than a moment.

    min -2.131 · max 2.613 · mean 0.0137 · no nan
    min 0 · max 999 · mean 499.1 · seen 16,777,216 of 67,108,864

No mode, graph, generator or version counter notices it. Nothing is read from a device other than
the CPU: that would wait for all that was started there.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any, Final

from shapetrace._asynchronous import is_asynchronous
from shapetrace._exception_table import leaving_surely
from shapetrace.inspecting.readable import Reason, unreadable_of
from shapetrace.inspecting.stable_reads import MemoryGoneError, steady_of
from shapetrace.inspecting.torch_access import Torch
from shapetrace.views.summary import SEPARATOR

MOST_BYTES: Final = 64 << 20
"""So much of a tensor is read at most."""
DOES_NOT_COMPUTE: Final = "not read: torch does not compute with it"
MOST_SECONDS: Final = 0.1
"""So long is read at most."""
FIRST_VALUES: Final = 8

_PIECE: Final = 1 << 15
"""Fewer numbers than this torch reads on the thread that asks: the others may not be there, as in a
process that was forked."""


@leaving_surely
def reason_not_to_read(tensor: Any, torch: Torch) -> str | None:
    """Why what is in a tensor is not read, in a few words; None where it may be."""
    unreadable = unreadable_of(torch.torch, Reason.NOT_MADE, Reason.JIT_TRACE)
    with torch.as_is():
        try:
            found = unreadable(tensor)
        except Exception as error:
            if is_asynchronous(error):
                raise
            return f"not read: {type(error).__name__}"
    if found is None:
        return None
    template = _IN_OTHER_WORDS.get(found.reason)
    return f"not read: {found.text}" if template is None else template.format(found.detail)


_IN_OTHER_WORDS: Final = {
    Reason.TRACED: "not read: {} keeps its data in its own way",
    Reason.TRANSFORM: "not read within a function transform",
    Reason.META: "no data on meta",
}


def statistics_text(tensor: Any, torch: Torch) -> str:
    """The smallest, the largest and the mean number of a tensor, or why they are not known."""
    reason = reason_not_to_read(tensor, torch)
    if reason is not None:
        return reason
    try:
        with torch.unseen():
            return _statistics(torch.base.detach(tensor), torch.torch)
    except MemoryGoneError as error:
        return f"not read: {error}"
    except Exception as error:
        if is_asynchronous(error):
            raise
        return DOES_NOT_COMPUTE


def numbers_in(tensor: Any, torch: Torch) -> Found | str:
    """What a tensor's numbers are like, or why that is not known."""
    reason = reason_not_to_read(tensor, torch)
    if reason is not None:
        return reason
    try:
        with torch.unseen():
            return _found(torch.base.detach(tensor), torch.torch)
    except MemoryGoneError as error:
        return f"not read: {error}"
    except Exception as error:
        if is_asynchronous(error):
            raise
        return DOES_NOT_COMPUTE


def values_text(tensor: Any, torch: Torch) -> str | None:
    """The first numbers of a tensor; None where they are not read."""
    if reason_not_to_read(tensor, torch) is not None:
        return None
    try:
        with torch.unseen():
            whole = torch.base.detach(tensor)
            first = _first(whole, torch.torch)
            if first.dtype.is_floating_point and first.element_size() < 4:
                first = first.to(torch.torch.float32)
            # A copy, as a tensor that stands for zeros has no memory to read them from.
            values = [number_text(value) for value in first.clone().tolist()]
            more = ["…"] if first.numel() < whole.numel() else []
            return ", ".join([*values, *more])
    except Exception as error:
        if is_asynchronous(error):
            raise
        return None


def number_text(value: Any) -> str:
    """A number in four digits, or whatever else it is."""
    if type(value) is float:
        return f"{value:.4g}"
    return f"{value:.4g}" if type(value) is complex else str(value)


def _first(tensor: Any, torch: Any) -> Any:
    """The first numbers, row by row."""
    while tensor.dim() > 1 and math.prod(tensor.shape[1:]) >= FIRST_VALUES:
        tensor = tensor.select(0, 0)
    if tensor.dim() == 0:
        return steady_of(torch)(tensor).reshape(1)
    first = tensor.narrow(0, 0, min(tensor.shape[0], FIRST_VALUES))
    return steady_of(torch)(first).reshape(-1)[:FIRST_VALUES]


def _statistics(tensor: Any, torch: Any) -> str:
    found = _found(tensor, torch)
    if isinstance(found, str):
        return found
    facts = found.facts(tensor.dtype)
    if found.numbers < found.total_numbers:
        facts.append(f"seen {found.numbers:,} of {found.total_numbers:,}")
    return SEPARATOR.join(facts)


def _found(tensor: Any, torch: Any) -> Found | str:
    if tensor.numel() == 0:
        return "empty"
    if tensor.dtype.is_complex:
        return "complex numbers have no order"
    for dimension, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        if stride == 0 and size > 1:
            # The same numbers again and again.
            tensor = tensor.narrow(dimension, 0, 1)
    found, steady = Found(torch, tensor.numel()), steady_of(torch)
    deadline = time.monotonic() + MOST_SECONDS
    for piece in _pieces(tensor, max(MOST_BYTES // tensor.element_size(), 1)):
        found.add(steady(piece))
        if time.monotonic() > deadline:
            break
    return found


def _pieces(tensor: Any, most: int) -> Iterator[Any]:
    """Small parts of a tensor: all of it, or so many numbers of it that are spread over it."""
    if tensor.numel() <= most:
        yield from small_parts(tensor)
        return
    bits = (most // _PIECE).bit_length()
    read = 0
    for number in range(1 << bits):
        # Counting with the bits reversed goes to the middle first, then to the quarters.
        reversed_bits = int(f"{number:0{bits}b}"[::-1], 2)
        piece = _piece(tensor, reversed_bits / (1 << bits))
        read += piece.numel()
        if read > most:
            return
        yield piece


def small_parts(tensor: Any) -> Iterator[Any]:
    """All of a tensor in parts that torch reads on the thread that asks."""
    if tensor.numel() < _PIECE:
        yield tensor
        return
    for half in _split(tensor):
        yield from small_parts(half)


def _piece(tensor: Any, where: float) -> Any:
    """The part of a tensor at a fraction of it."""
    while tensor.numel() >= _PIECE:
        where *= 2
        side = int(where)
        where -= side
        tensor = _split(tensor)[side]
    return tensor


def _split(tensor: Any) -> tuple[Any, Any]:
    shape = tensor.shape
    largest = max(range(len(shape)), key=shape.__getitem__)
    half = shape[largest] // 2
    return tensor.narrow(largest, 0, half), tensor.narrow(largest, half, shape[largest] - half)


class Found:
    """What was found in the pieces of a tensor."""

    def __init__(self, torch: Any, total_numbers: int) -> None:
        self.total_numbers = total_numbers
        self.numbers = 0
        self._torch = torch
        self.low = math.inf
        self.high = -math.inf
        self.total = 0.0
        self.nan = 0
        self.infinite = 0

    def add(self, piece: Any) -> None:
        """Read a piece."""
        torch = self._torch
        self.numbers += piece.numel()
        if piece.dtype.is_floating_point:
            if piece.element_size() < 4:
                piece = piece.to(torch.float32)
        elif piece.dtype is not torch.int64:
            piece = piece.to(torch.float64 if piece.dtype is torch.uint64 else torch.int64)
        low, high = (each.item() for each in torch.aminmax(piece))
        if low != low:  # there is a nan among them
            kept = piece[~torch.isnan(piece)]
            self.nan += piece.numel() - kept.numel()
            if not kept.numel():
                return
            piece = kept
            low, high = (each.item() for each in torch.aminmax(piece))
        if math.inf in (high, -low):
            self.infinite += int(torch.isinf(piece).sum().item())
        self.low, self.high = min(self.low, low), max(self.high, high)
        self.total += piece.sum(dtype=torch.float64).item()

    def facts(self, dtype: Any) -> list[str]:
        """What is told of all of them."""
        kept = self.numbers - self.nan
        if dtype is self._torch.bool:
            return [f"{int(self.total):,} of {self.numbers:,} true"]
        facts = []
        if kept:
            facts = [
                f"min {number_text(self.low)}",
                f"max {number_text(self.high)}",
                f"mean {number_text(self.total / kept)}",
            ]
        if dtype.is_floating_point:
            facts.append(f"{self.nan:,} nan" if self.nan else "no nan")
        if self.infinite:
            facts.append(f"{self.infinite:,} inf")
        return facts
