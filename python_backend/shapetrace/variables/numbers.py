"""Remembered numbers of a tensor or an array, for tolerances."""

from __future__ import annotations

import sys
from typing import Any, Final, NamedTuple

from shapetrace._asynchronous import is_asynchronous
from shapetrace._exception_table import leaving_surely
from shapetrace.inspecting.memory import may_be_read
from shapetrace.inspecting.stable_reads import steady_of
from shapetrace.inspecting.statistics import spread
from shapetrace.panes.tensor_contents import reason_not_to_read
from shapetrace.variables.loaded import Tensors

MOST_NUMBERS: Final = 1 << 16
"""Limit on the numbers kept of each; of larger ones, evenly spaced numbers."""


class Numbers(NamedTuple):
    """Some numbers, as an array of their own library."""

    values: Any
    """One row of ``float64``."""
    is_torch: bool
    total: int
    """How many there were."""


def numbers_of_tensor(tensor: Any, tensors: Tensors) -> Numbers | None:
    """Numbers of a tensor; None if it is not read."""
    torch = tensors.torch
    if reason_not_to_read(tensor, torch) is not None:
        return None
    try:
        with torch.unseen():
            whole = torch.base.detach(tensor)
            if whole.is_complex():
                whole = torch.torch.view_as_real(whole)
            part = steady_of(torch.torch)(spread(whole, MOST_NUMBERS)).reshape(-1)
            return Numbers(part.to(torch.torch.float64, copy=True), True, whole.numel())
    except Exception as error:
        if is_asynchronous(error):
            raise
        return None


@leaving_surely
def numbers_of_array(array: Any) -> Numbers | None:
    """Numbers of a NumPy array; None if it has none."""
    numpy: Any = sys.modules["numpy"]
    try:
        if not may_be_read(array, numpy.ndarray):
            return None
        whole = numpy.ndarray.view(array, numpy.ndarray)
        if whole.dtype.kind not in "biufc":
            return None
        part = spread(whole, MOST_NUMBERS).reshape(-1)
        if part.dtype.kind == "c":
            part = numpy.concatenate([part.real, part.imag])
        with numpy.errstate(all="ignore"):
            return Numbers(part.astype(numpy.float64, copy=True), False, int(whole.size))
    except Exception as error:
        if is_asynchronous(error):
            raise
        return None


@leaving_surely
def is_within(before: Numbers | None, after: Numbers | None, tolerance: float) -> bool | None:
    """Return whether all numbers differ by at most a tolerance; None if unknown."""
    if before is None or after is None:
        return None
    if before.is_torch is not after.is_torch or before.total != after.total:
        return None
    one, other = before.values, after.values
    if one.shape != other.shape:
        return None
    if not before.is_torch:
        numpy: Any = sys.modules["numpy"]
        with numpy.errstate(all="ignore"):
            near = numpy.abs(one - other) <= tolerance
        return bool((near | (one == other) | ((one != one) & (other != other))).all())
    from shapetrace.variables.loaded import loaded_tensors

    tensors = loaded_tensors()
    assert tensors is not None
    with tensors.torch.unseen():
        near = (one - other).abs() <= tolerance
        same = near | (one == other) | (one.ne(one) & other.ne(other))
        return bool(same.all())
