"""The numbers of a tensor, read only when the user opens it, and for a short time at most.

    min -2.131 · max 2.613 · mean 0.0137 · no nan
    min 0 · max 999 · mean 499.1 · seen 16,777,216 of 67,108,864

No mode, graph, generator or version counter notices it. Nothing is read from a device other than
the CPU: that would wait for all that was started there.
"""

from __future__ import annotations

import math
from typing import Any, Final

from shapetrace._asynchronous import is_asynchronous
from shapetrace._exception_table import leaving_surely
from shapetrace.inspecting.readability import Reason, unreadable_of
from shapetrace.inspecting.stable_reads import MemoryGoneError, steady_of
from shapetrace.inspecting.statistics import Statistics, statistics_within
from shapetrace.inspecting.torch_access import Torch
from shapetrace.views.summary import SEPARATOR

MOST_BYTES: Final = 64 << 20
"""So much of a tensor is read at most."""
DOES_NOT_COMPUTE: Final = "not read: torch does not compute with it"
MOST_SECONDS: Final = 0.1
"""So long is read at most."""
FIRST_VALUES: Final = 8


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


@leaving_surely
def statistics_text(tensor: Any, torch: Torch) -> str:
    """The smallest, the largest and the mean number of a tensor, or why they are not known."""
    found = statistics_in(tensor, torch)
    if isinstance(found, str):
        return found
    with torch.as_is():
        dtype = torch.base.dtype.__get__(tensor)
    facts = _facts(found, dtype, torch.torch)
    if found.seen < found.count:
        facts.append(f"seen {found.seen:,} of {found.count:,}")
    return SEPARATOR.join(facts)


def statistics_in(tensor: Any, torch: Torch) -> Statistics | str:
    """Statistics of a tensor's numbers, or why they are not known."""
    reason = reason_not_to_read(tensor, torch)
    if reason is not None:
        return reason
    try:
        with torch.unseen():
            whole = torch.base.detach(tensor)
            if whole.numel() == 0:
                return "empty"
            found = statistics_within(whole, torch.torch, MOST_BYTES, MOST_SECONDS)
            return "complex numbers have no order" if found is None else found
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
            # A copy: an expanded tensor of zeros has no memory to read them from.
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


def _facts(found: Statistics, dtype: Any, torch: Any) -> list[str]:
    """The statistics as text."""
    if dtype is torch.bool:
        return [f"{int(found.total):,} of {found.seen:,} true"]
    facts = []
    if found.seen > found.nan:
        facts = [
            f"min {number_text(found.lowest)}",
            f"max {number_text(found.highest)}",
            f"mean {number_text(found.mean_of_all)}",
        ]
    if dtype.is_floating_point:
        facts.append(f"{found.nan:,} nan" if found.nan else "no nan")
    if found.infinite:
        facts.append(f"{found.infinite:,} inf")
    return facts
