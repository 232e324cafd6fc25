"""The numbers of a tensor or an array, read only where ``stats=True`` asks for it.

No more than some megabytes are read of one, for no longer than a moment; of what lies on another
device nothing is, as that would wait for it.
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
from shapetrace.panes.reading import numbers_in
from shapetrace.variables.loaded import loaded_tensors

MOST_BYTES: Final = 16 << 20
"""So much of an array is read at most."""


def with_statistics(described: FollowedValue, value: Any) -> FollowedValue:
    """The same with statistics, where it is a tensor or an array."""
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
    found = numbers_in(tensor, tensors.torch)
    if isinstance(found, str):
        return FollowedStatistics(0, 0, reason=found)
    with tensors.as_is():
        is_bool = tensor.dtype is tensors.torch.torch.bool
    kept = found.numbers - found.nan
    return FollowedStatistics(
        total=found.total_numbers,
        seen=found.numbers,
        low=_finite(found.low),
        high=_finite(found.high),
        mean=_finite(found.total / kept) if kept else None,
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
        return _of_numbers(_part(plain), plain.size, numpy)
    except Exception as error:
        if is_asynchronous(error):
            raise
        return FollowedStatistics(0, 0, reason="not read: NumPy does not compute with it")


def _part(array: Any) -> Any:
    """All of an array, or items that are spread over it."""
    excess = array.nbytes // MOST_BYTES
    sizes = sorted(range(array.ndim), key=lambda axis: -int(array.shape[axis]))
    steps = [1] * array.ndim
    for axis in sizes:
        if excess < 1:
            break
        steps[axis] = min(int(array.shape[axis]), excess + 1)
        excess //= steps[axis]
    return array[tuple(slice(None, None, step) for step in steps)]


def _of_numbers(part: Any, total: int, numpy: Any) -> FollowedStatistics:
    seen = int(part.size)
    if part.dtype.kind == "b":
        true = int(numpy.count_nonzero(part))
        return FollowedStatistics(
            total, seen, float(true == seen), float(true > 0), true / seen, true=true
        )
    not_numbers = infinite = 0
    with numpy.errstate(all="ignore"):
        if part.dtype.kind == "f":
            finite = numpy.isfinite(part)
            if not finite.all():
                not_numbers = int(numpy.isnan(part).sum())
                part = part[finite]
                infinite = seen - not_numbers - int(part.size)
        if not part.size:
            return FollowedStatistics(total, seen, not_numbers=not_numbers, infinite=infinite)
        low, high = float(part.min()), float(part.max())
        mean = float(part.mean(dtype=numpy.float64))
    return FollowedStatistics(
        *(total, seen, _finite(low), _finite(high), _finite(mean), not_numbers, infinite)
    )


def _finite(number: float) -> float | None:
    return float(number) if number - number == 0 else None
