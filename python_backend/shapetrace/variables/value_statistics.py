"""Statistics of tensors and arrays, for ``stats=True``.

At most a few megabytes of each are read; tensors on other devices are not read at all, as that
would wait for the device.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any, Final

from shapetrace._asynchronous import is_asynchronous
from shapetrace._exception_table import leaving_surely
from shapetrace.events import followed
from shapetrace.events.followed import FollowedStatistics, FollowedValue
from shapetrace.events.model import Tensor
from shapetrace.inspecting.memory import may_be_read
from shapetrace.inspecting.statistics import Statistics, comparable_array, spread
from shapetrace.panes.tensor_contents import statistics_in
from shapetrace.variables.loaded import loaded_tensors

MOST_BYTES: Final = 16 << 20
"""Limit on the bytes of an array that are read."""


def with_statistics(described: FollowedValue, value: Any) -> FollowedValue:
    """Add statistics to a described tensor or array."""
    if described.kind == followed.TENSOR:
        found = _of_tensor(value)
    elif described.kind == followed.ARRAY and isinstance(described.value, Tensor):
        found = _of_array(value)
    else:
        return described
    return replace(described, statistics=found)


@leaving_surely
def _of_tensor(tensor: Any) -> FollowedStatistics | None:
    tensors = loaded_tensors()
    if tensors is None:
        return None
    torch = tensors.torch
    found = statistics_in(tensor, torch)
    if isinstance(found, str):
        return FollowedStatistics(0, 0, reason=found)
    with tensors.as_is():
        is_bool = tensor.dtype is torch.torch.bool
    return FollowedStatistics(
        total=found.count,
        seen=found.seen,
        low=_finite(found.lowest),
        high=_finite(found.highest),
        mean=None if found.infinite else found.mean,
        not_numbers=found.nan,
        infinite=found.infinite,
        true=int(found.total) if is_bool else None,
    )


def _of_array(array: Any) -> FollowedStatistics:
    numpy: Any = sys.modules["numpy"]
    try:
        if not may_be_read(array, numpy.ndarray):
            return FollowedStatistics(0, 0, reason="not read: its memory may be gone")
        plain = numpy.ndarray.view(array, numpy.ndarray)
        kind = plain.dtype.kind
        if kind not in "biuf":
            return FollowedStatistics(0, 0, reason=f"not read: {plain.dtype.name}")
        if not plain.size:
            return FollowedStatistics(0, 0, reason="empty")
        return _of_numbers(plain, numpy)
    except Exception as error:
        if is_asynchronous(error):
            raise
        return FollowedStatistics(0, 0, reason="not read: NumPy does not compute with it")


@leaving_surely
def _of_numbers(array: Any, numpy: Any) -> FollowedStatistics:
    part = spread(array, max(MOST_BYTES // array.itemsize, 1))
    found = Statistics()
    with numpy.errstate(all="ignore"):
        found.add(comparable_array(part), numpy)
    return FollowedStatistics(
        total=array.size,
        seen=found.seen,
        low=_finite(found.low),
        high=_finite(found.high),
        mean=found.mean,
        not_numbers=found.nan,
        infinite=found.infinite,
        true=int(found.total) if array.dtype.kind == "b" else None,
    )


def _finite(number: float) -> float | None:
    return float(number) if number - number == 0 else None
