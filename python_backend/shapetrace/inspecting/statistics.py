"""Range, mean and histogram of the numbers in tensors and arrays.

``readability``, ``stable_reads`` and ``Torch.unseen`` see to it that reading is safe and unnoticed.
Callers limit how much is read.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any, Final

from shapetrace.inspecting.stable_reads import steady_of

_PIECE: Final = 1 << 15
"""torch handles fewer numbers than this on the calling thread: after a fork its other threads are
gone."""


class Statistics:
    """Statistics of the numbers that were added."""

    __slots__ = ("count", "finite", "high", "low", "nan", "negative", "positive", "total")

    def __init__(self, count: int = 0) -> None:
        self.count = count
        """How many numbers there are, where only some may be added."""
        self.finite = 0
        """How many are finite; range and sum are over these."""
        self.low = math.inf
        self.high = -math.inf
        self.total = 0.0
        self.nan = 0
        self.positive = 0
        """How many are positive infinity."""
        self.negative = 0

    @property
    def seen(self) -> int:
        """How many numbers there were."""
        return self.finite + self.nan + self.infinite

    @property
    def infinite(self) -> int:
        """How many are infinite, of either sign."""
        return self.positive + self.negative

    @property
    def mean(self) -> float | None:
        """The mean of the finite numbers; None if there are none, or it overflows a float."""
        mean = self.total / self.finite if self.finite else math.inf
        return mean if math.isfinite(mean) else None

    @property
    def lowest(self) -> float:
        """The minimum, infinities included; infinity if there is none."""
        return -math.inf if self.negative else self.low

    @property
    def highest(self) -> float:
        """The maximum, infinities included."""
        return math.inf if self.positive else self.high

    @property
    def mean_of_all(self) -> float:
        """The mean of all but NaN, infinities included."""
        total = self.total
        if self.positive:
            total += math.inf
        if self.negative:
            total -= math.inf
        return total / ((self.finite + self.infinite) or 1)

    def add(self, numbers: Any, library: Any) -> None:
        """Add real numbers of torch or NumPy, in a dtype that the library can reduce."""
        if 0 in numbers.shape:
            return
        low, high = _range(numbers, library)
        if not (math.isfinite(low) and math.isfinite(high)):
            self.nan += int(library.isnan(numbers).sum())
            self.positive += int((numbers == math.inf).sum())
            self.negative += int((numbers == -math.inf).sum())
            numbers = numbers[library.isfinite(numbers)]
            if 0 in numbers.shape:
                return
            low, high = _range(numbers, library)
        self.low, self.high = min(self.low, low), max(self.high, high)
        self.total += numbers.sum(dtype=library.float64).item()
        self.finite += math.prod(numbers.shape)

    def add_tensor(self, tensor: Any, torch: Any) -> None:
        """Add the numbers of a tensor of any dtype, on the calling thread only."""
        for part in small_parts(tensor):
            self.add(comparable(part, torch), torch)


def _range(numbers: Any, library: Any) -> tuple[Any, Any]:
    at_once = getattr(library, "aminmax", None)  # torch's
    low, high = at_once(numbers) if at_once else (numbers.min(), numbers.max())
    return low.item(), high.item()


def comparable(tensor: Any, torch: Any) -> Any:
    """The numbers of a tensor in a dtype that torch can compare and sum."""
    if tensor.dtype.is_floating_point:
        return tensor.to(torch.float32) if tensor.element_size() < 4 else tensor
    if tensor.dtype is torch.int64:
        return tensor
    return tensor.to(torch.float64 if tensor.dtype is torch.uint64 else torch.int64)


def comparable_array(array: Any) -> Any:
    """The numbers of a NumPy array in a dtype that NumPy can compare and sum."""
    kind = array.dtype.kind
    if kind == "b":
        return array.view("u1")
    if kind != "f" or array.dtype.itemsize in (4, 8):
        return array
    return array.astype("f4" if array.dtype.itemsize < 4 else "f8")


def histogram(numbers: Any, low: float, high: float, bins: int, library: Any) -> list[int]:
    """Count float64 numbers in each bin of a range; numbers outside are left out.

    Torch's own histograms would use other threads.
    """
    # Halved, as the width of the range may overflow a float.
    width = (high / 2 - low / 2) / bins or 1.0
    places = (numbers[library.isfinite(numbers)] / 2 - low / 2) / width
    places = places.clip(0, bins - 1)
    whole = places.long() if hasattr(places, "long") else places.astype("i8")
    counts: list[int] = library.bincount(whole, minlength=bins).tolist()
    return counts


def histogram_of_tensor(
    tensor: Any, low: float, high: float, bins: int, torch: Any
) -> tuple[int, ...]:
    """The histogram of a tensor of any dtype, on the calling thread; empty for an empty range."""
    if low == high:
        return ()
    found = [
        histogram(part.to(torch.float64), low, high, bins, torch) for part in small_parts(tensor)
    ]
    return tuple(map(sum, zip(*found, strict=True)))


def statistics_within(
    tensor: Any, torch: Any, most_bytes: int, most_seconds: float
) -> Statistics | None:
    """Statistics of a tensor; of a large one, from parts spread over it.

    None for complex numbers, which have no order.
    """
    if tensor.dtype.is_complex:
        return None
    steady = steady_of(torch)
    for dimension, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        if stride == 0 and size > 1:
            # An expanded dimension repeats its numbers.
            tensor = tensor.narrow(dimension, 0, 1)
    found = Statistics(tensor.numel())
    deadline = time.monotonic() + most_seconds
    for piece in _spread_parts(tensor, max(most_bytes // tensor.element_size(), 1)):
        found.add(comparable(steady(piece), torch), torch)
        if time.monotonic() > deadline:
            break
    return found


def spread(array: Any, most: int) -> Any:
    """Evenly spaced items of a tensor or an array, up to a limit."""
    sizes = list(array.shape)
    if math.prod(sizes) <= most:
        return array
    steps = [1] * len(sizes)
    for axis in sorted(range(len(sizes)), key=lambda axis: -sizes[axis]):
        size = sizes[axis]
        others = math.prod(sizes) // size
        steps[axis] = -(-size // max(most // others, 1))
        sizes[axis] = -(-size // steps[axis])
    return array[tuple(slice(None, None, step) for step in steps)]


def small_parts(tensor: Any) -> Iterator[Any]:
    """All of a tensor, in parts small enough for the calling thread."""
    if tensor.numel() < _PIECE:
        yield tensor
        return
    for half in _split(tensor):
        yield from small_parts(half)


def _spread_parts(tensor: Any, most: int) -> Iterator[Any]:
    """Small parts of a tensor: all of it, or some numbers spread over it."""
    if tensor.numel() <= most:
        yield from small_parts(tensor)
        return
    bits = (most // _PIECE).bit_length()
    read = 0
    for number in range(1 << bits):
        # Counting with the bits reversed goes to the middle first, then to the quarters.
        reversed_bits = int(f"{number:0{bits}b}"[::-1], 2)
        part = _part(tensor, reversed_bits / (1 << bits))
        read += part.numel()
        if read > most:
            return
        yield part


def _part(tensor: Any, where: float) -> Any:
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
