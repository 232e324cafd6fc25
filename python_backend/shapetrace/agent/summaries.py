"""What is told of a captured value: its shape, and what its numbers are like.

No mode, graph, generator or version counter notices it. Of a large tensor some numbers are looked
at that lie evenly spaced in it; of one on another device fewer, as they are copied from there.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Final, NamedTuple

from shapetrace._asynchronous import is_asynchronous
from shapetrace._classes import is_kind
from shapetrace._exception_table import leaving_surely
from shapetrace.inspecting.memory import may_be_read
from shapetrace.inspecting.readable import Reason, unreadable_of
from shapetrace.inspecting.stable_reads import steady_of
from shapetrace.inspecting.torch_access import Torch, array_type, loaded_torch
from shapetrace.panes import presentation
from shapetrace.panes.reading import small_parts
from shapetrace.panes.tensors import described
from shapetrace.transport.captures import BINS, Statistics
from shapetrace.views.shapes import value_text

MOST_NUMBERS: Final = 1 << 20
"""So many are looked at for the range, the mean, and what is not finite."""
MOST_COUNTED: Final = 1 << 15
"""So many are counted for the picture."""
MOST_FROM_ELSEWHERE: Final = 1 << 16
"""So many are copied from another device, which is waited for."""
LONGEST_TEXT: Final = 100

_PLAIN: Final = frozenset({bool, int, float, complex, str, bytes, type(None)})


class Summary(NamedTuple):
    """What is told of a value."""

    kind: str
    dtype: str = ""
    shape: tuple[int, ...] | None = None
    device: str = "cpu"
    text: str = ""
    statistics: Statistics | None = None


def summary_of(value: Any) -> Summary:
    """What is told of a value; less of one that cannot be read."""
    torch = loaded_torch()
    kind = type(value)
    if torch is None:
        return Summary(kind.__name__)
    if issubclass(kind, torch.tensor):
        return _of_tensor(value, torch)
    if is_kind(kind, array_type()):
        return _of_array(value, torch)
    if kind in (bool, int, float):
        return Summary(kind.__name__, text=_text_of(value), statistics=_of_number(value))
    return Summary(kind.__name__, text=_text_of(value)[:LONGEST_TEXT])


@leaving_surely
def _of_tensor(tensor: Any, torch: Torch) -> Summary:
    with torch.as_is():
        fact = described(tensor, torch)
    shape = fact.shape
    if shape is None or any(type(size) is not int for size in shape):
        return Summary(fact.kind, text=value_text(fact))
    statistics = None
    try:
        unreadable = unreadable_of(torch.torch, Reason.NOT_MADE, Reason.DEVICE, Reason.JIT_TRACE)
        with torch.as_is():
            found = unreadable(tensor)
        if found is None:
            with torch.unseen():
                statistics = statistics_of(torch.base.detach(tensor), torch.torch)
    except Exception as error:
        if is_asynchronous(error):
            raise
        # A dtype that torch does not compute with, say: the shape is told all the same.
    sizes = tuple(size for size in shape if type(size) is int)
    return Summary(fact.kind, fact.dtype, sizes, fact.device, statistics=statistics)


def _of_array(array: Any, torch: Torch) -> Summary:
    kind: Any = array_type()
    shape, dtype = tuple(kind.shape.__get__(array)), kind.dtype.__get__(array)
    statistics = None
    try:
        if not may_be_read(array, kind):
            return Summary("ndarray", dtype.name, shape)
        with torch.unseen():
            spaced = kind.reshape(array, -1)[:: max(math.prod(shape) // MOST_NUMBERS, 1)]
            found = statistics_of(torch.torch.tensor(spaced), torch.torch)
            statistics = found and replace(found, numbers=math.prod(shape))
    except Exception as error:
        if is_asynchronous(error):
            raise
    return Summary("ndarray", dtype.name, shape, statistics=statistics)


def statistics_of(tensor: Any, torch: Any) -> Statistics | None:
    """The range, the mean and the distribution of the numbers of a tensor."""
    numbers = tensor.numel()
    if tensor.dtype.is_complex:
        return None  # They have no order.
    if numbers == 0:
        return Statistics(0, 0, None, None, None)
    if tensor.device.type == "cpu":
        looked_at = steady_of(torch)(_spaced(tensor, MOST_NUMBERS))
    else:
        looked_at = _spaced(tensor, MOST_FROM_ELSEWHERE).to("cpu")
    found = _Range(torch)
    for part in small_parts(looked_at):
        found.add(_comparable(part, torch))
    seen = looked_at.numel()
    if not found.finite:
        return Statistics(numbers, seen, None, None, None, found.nans, found.infinities)
    bins = _count(_spaced(looked_at, MOST_COUNTED), found.low, found.high, torch)
    mean = found.total / found.finite
    return Statistics(
        *(numbers, seen, found.low, found.high, mean if math.isfinite(mean) else None),
        *(found.nans, found.infinities, bins),
    )


class _Range:
    """What was found in some numbers."""

    def __init__(self, torch: Any) -> None:
        self.low = math.inf
        self.high = -math.inf
        self.total = 0.0
        self.finite = 0
        self.nans = 0
        self.infinities = 0
        self._torch = torch

    def add(self, part: Any) -> None:
        """Look at a few of them."""
        torch = self._torch
        low, high = (each.item() for each in torch.aminmax(part))
        if not (math.isfinite(low) and math.isfinite(high)):
            nans = int(torch.isnan(part).sum().item())
            kept = part[torch.isfinite(part)]
            self.nans += nans
            self.infinities += part.numel() - kept.numel() - nans
            if not kept.numel():
                return
            part = kept
            low, high = (each.item() for each in torch.aminmax(part))
        self.low, self.high = min(self.low, low), max(self.high, high)
        self.total += part.sum(dtype=torch.float64).item()
        self.finite += part.numel()


def _comparable(part: Any, torch: Any) -> Any:
    """The same numbers in a dtype that torch compares and adds up."""
    if part.dtype.is_floating_point:
        return part.to(torch.float32) if part.element_size() < 4 else part
    if part.dtype is torch.int64:
        return part
    return part.to(torch.float64 if part.dtype is torch.uint64 else torch.int64)


def _count(tensor: Any, low: float, high: float, torch: Any) -> tuple[int, ...]:
    """How many of some numbers lie in each part of their range.

    By what torch computes on the thread that asks: its own histograms take others as well.
    """
    if low == high:
        return ()
    counts = [0] * BINS
    # Halves, so that the range of two numbers that are far apart is still one.
    scale = BINS / (high / 2 - low / 2)
    for part in small_parts(tensor):
        values = part.to(torch.float64)
        values = values[torch.isfinite(values)]
        places = ((values / 2 - low / 2) * scale).clamp(0, BINS - 1).to(torch.int64)
        for place, count in enumerate(torch.bincount(places, minlength=BINS).tolist()):
            counts[place] += count
    return tuple(counts)


def _spaced(tensor: Any, most: int) -> Any:
    """Every second number, or every fourth and so on, along the longest dimensions."""
    while tensor.numel() > most:
        longest = max(range(tensor.dim()), key=tensor.shape.__getitem__)
        tensor = tensor[(slice(None),) * longest + (slice(None, None, 2),)]
    return tensor


def _of_number(value: float) -> Statistics | None:
    try:
        number = float(value)
    except OverflowError:
        return None
    if math.isfinite(number):
        return Statistics(1, 1, number, number, number)
    is_nan = number != number
    return Statistics(1, 1, None, None, None, int(is_nan), int(not is_nan))


def _text_of(value: Any) -> str:
    """Containers by the shapes in them, numbers and texts as they are, the rest by its class."""
    from shapetrace.recorder.describe import plain_text

    if type(value) in _PLAIN:
        return plain_text(value)
    return presentation(value) or type(value).__name__
