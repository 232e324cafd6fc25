"""Summaries of captured values: shape, statistics and histogram.

No mode, graph, generator or version counter notices it. Of a large tensor some numbers are looked
at that lie evenly spaced in it; of one on another device fewer, as they are copied from there.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from shapetrace._asynchronous import is_asynchronous
from shapetrace._classes import is_kind
from shapetrace._exception_table import leaving_surely
from shapetrace.inspecting.memory import may_be_read
from shapetrace.inspecting.readability import Reason, unreadable_of
from shapetrace.inspecting.stable_reads import steady_of
from shapetrace.inspecting.statistics import Statistics as _Found
from shapetrace.inspecting.statistics import (
    comparable_array,
    histogram,
    histogram_of_tensor,
    spread,
)
from shapetrace.inspecting.torch_access import Torch, array_type, loaded_torch
from shapetrace.panes import presentation
from shapetrace.panes.tensors import described
from shapetrace.transport.requested import BINS, Statistics
from shapetrace.views.shapes import value_text

MOST_NUMBERS: Final = 1 << 20
"""So many are looked at for the range, the mean, and what is not finite."""
MOST_COUNTED: Final = 1 << 15
"""So many are counted for the histogram."""
MOST_FROM_ELSEWHERE: Final = 1 << 16
"""So many are copied from another device, which is waited for."""
LONGEST_TEXT: Final = 100

_PLAIN: Final = frozenset({bool, int, float, complex, str, bytes, type(None)})


class Summary(NamedTuple):
    """What is sent of a captured value."""

    kind: str
    dtype: str = ""
    shape: tuple[int, ...] | None = None
    device: str = "cpu"
    text: str = ""
    statistics: Statistics | None = None


def summary_of(value: Any) -> Summary:
    """Return the summary of a value; a shorter one if it cannot be read."""
    torch = loaded_torch()
    kind = type(value)
    if torch is None:
        return Summary(kind.__name__)
    if issubclass(kind, torch.tensor):
        return _of_tensor(value, torch)
    if is_kind(kind, array_type()):
        return _of_array(value)
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
                statistics = _statistics_of_tensor(torch.base.detach(tensor), torch.torch)
    except Exception as error:
        if is_asynchronous(error):
            raise
        # A dtype that torch does not compute with, say: the shape is told all the same.
    sizes = tuple(size for size in shape if type(size) is int)
    return Summary(fact.kind, fact.dtype, sizes, fact.device, statistics=statistics)


def _of_array(array: Any) -> Summary:
    kind: Any = array_type()
    shape, dtype = tuple(kind.shape.__get__(array)), kind.dtype.__get__(array)
    statistics = None
    try:
        if dtype.kind in "biuf" and may_be_read(array, kind):
            statistics = _statistics_of_array(kind.view(array, kind))
    except Exception as error:
        if is_asynchronous(error):
            raise
    return Summary("ndarray", dtype.name, shape, statistics=statistics)


@leaving_surely
def _statistics_of_array(array: Any) -> Statistics:
    numpy: Any = sys.modules["numpy"]
    found, bins = _Found(), []
    with numpy.errstate(all="ignore"):
        part = comparable_array(spread(array, MOST_NUMBERS))
        found.add(part, numpy)
        if found.low < found.high:
            counted = spread(part, MOST_COUNTED).astype("f8")
            bins = histogram(counted, found.low, found.high, BINS, numpy)
    return _told(found, array.size, bins)


def _statistics_of_tensor(tensor: Any, torch: Any) -> Statistics | None:
    if tensor.dtype.is_complex:
        return None  # They have no order.
    if tensor.device.type == "cpu":
        part = steady_of(torch)(spread(tensor, MOST_NUMBERS))
    else:
        part = spread(tensor, MOST_FROM_ELSEWHERE).to("cpu")
    found = _Found()
    found.add_tensor(part, torch)
    bins: tuple[int, ...] = ()
    if found.low < found.high:
        counted = spread(part, MOST_COUNTED)
        bins = histogram_of_tensor(counted, found.low, found.high, BINS, torch)
    return _told(found, tensor.numel(), bins)


def _told(found: _Found, count: int, bins: Sequence[int]) -> Statistics:
    low, high = (found.low, found.high) if found.finite else (None, None)
    return Statistics(
        *(count, found.seen, low, high, found.mean, found.nan, found.infinite, tuple(bins))
    )


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
