"""A fingerprint of a tensor, as the raw tuple that ``events.fingerprint.Fingerprint`` is made of.

On the CPU it is there at once. From another device, which nobody waits for here, only numbers that
are still being computed there; ``Awaited`` says what becomes of them once they have come.
"""

from __future__ import annotations

import math
from typing import Any, Final, TypeAlias

import torch
from torch import Tensor

from shapetrace._asynchronous import is_asynchronous
from shapetrace.recorder.values.moments import Moments, has_forked, in_order, pieces
from shapetrace.recorder.values.places import samples_of, samples_on_device, spread
from shapetrace.recorder.values.readable import NotReadError, dtype_of, readable

Raw: TypeAlias = tuple[Any, ...]
"""The fields of a ``Fingerprint`` in their order."""

MOST_READ: Final = 1 << 27
"""A tensor of more numbers is judged by some of them."""
MOST_SPREAD: Final = 1 << 20
"""By so many."""

_MASK: Final = (1 << 64) - 1
_DEVICE_PIECE: Final = 1 << 24


class Awaited:
    """A tensor on another device: what is known of it, and what is being computed there."""

    __slots__ = ("count", "dtype", "floats", "integers", "looked_at", "stream", "times")

    def __init__(
        self,
        dtype: str,
        count: int,
        looked_at: int | None,
        times: list[int],
        floats: Tensor,
        integers: Tensor | None,
    ) -> None:
        self.dtype = dtype
        self.count = count
        self.looked_at = looked_at
        self.times = times
        """How often the numbers of each part are there."""
        self.floats = floats
        """Of each part its moments, one after the other; samples, where they are no whole ones."""
        self.integers = integers
        """Of each part the exact sums, if it is of whole numbers; samples."""
        on_cuda = floats.device.type == "cuda"
        self.stream = torch.cuda.current_stream(floats.device) if on_cuda else None

    def raw(self, floats: list[float], integers: list[int]) -> Raw:
        """The fingerprint, now that the numbers are here."""
        moments = Moments()
        exact = [0, 0]
        for part, times in enumerate(self.times):
            moments.join(floats[part * 7 : part * 7 + 7], times)
            for which, found in enumerate(integers[part * 2 : part * 2 + 2]):
                exact[which] += found * times
        if self.integers is None:
            samples: list[Any] = floats[len(self.times) * 7 :]
            return _raw(self.dtype, self.count, self.looked_at, moments, samples, None)
        samples = integers[len(self.times) * 2 :]
        checksum = _checksum(*exact)
        return _raw(self.dtype, self.count, self.looked_at, moments, samples, checksum)


def look(tensor: Any) -> Raw | Awaited:
    """A tensor's fingerprint; to be called where all is unseen. Raises no fault of ours."""
    dtype, count = "unknown", 0
    try:
        dtype = dtype_of(tensor)
        plain = readable(tensor)
        count = plain.numel()
        return _look(plain, dtype)
    except NotReadError as reason:
        return unknown(dtype, count, str(reason))
    except BaseException as error:
        if is_asynchronous(error):
            raise
        return unknown(dtype, count, f"torch does not compute with it: {type(error).__name__}")


def unknown(dtype: str, count: int, reason: str) -> Raw:
    """The fingerprint of what could not be looked at."""
    return (dtype, count, None, None, None, None, (), 0, 0, 0, None, None, reason)


def _look(tensor: Tensor, dtype: str) -> Raw | Awaited:
    if tensor.dtype.is_complex:
        tensor = torch.view_as_real(tensor.resolve_conj())
    tensor = tensor.resolve_neg()
    count = tensor.numel()
    if count == 0:
        return (dtype, 0, None, None, None, None, (), 0, 0, 0, None, None, None)
    if not tensor.is_cpu:
        return _look_on_device(tensor, dtype)
    if count > MOST_READ and has_forked():
        raise NotReadError("too large to be looked at in a process that was forked")
    read = tensor if count <= MOST_READ else spread(tensor, MOST_SPREAD)
    moments = Moments()
    is_whole = not tensor.dtype.is_floating_point
    total = squares = 0
    for numbers, times in in_order(read):
        if not is_whole:
            moments.add(numbers, times)
            continue
        moments.add(numbers, times)
        for piece in pieces(numbers):
            sums = _exact_sums(piece)
            total += int(sums[0]) * times
            squares += int(sums[1]) * times
    checksum = _checksum(total, squares) if is_whole else None
    looked_at = None if read is tensor else read.numel()
    return _raw(dtype, count, looked_at, moments, samples_of(tensor), checksum)


def _look_on_device(tensor: Tensor, dtype: str) -> Awaited:
    """Everything is computed whatever the numbers are: to ask would be to wait."""
    count = tensor.numel()
    read = tensor if count <= MOST_READ else spread(tensor, MOST_SPREAD)
    is_whole = not tensor.dtype.is_floating_point
    # One kind of device has no float64.
    wide = torch.float32 if tensor.device.type == "mps" else torch.float64
    all_times: list[int] = []
    floats: list[Tensor] = []
    integers: list[Tensor] = []
    for numbers, times in in_order(read):
        for piece in torch.split(numbers, _DEVICE_PIECE):
            all_times.append(times)
            floats.append(_sums_on_device(piece.to(wide)))
            if is_whole:
                integers.append(torch.stack(_exact_sums(piece)))
    samples = samples_on_device(tensor)
    if is_whole:
        integers.append(samples.to(torch.int64))
    else:
        floats.append(samples.to(wide))
    looked_at = None if read is tensor else read.numel()
    together = torch.cat(integers) if is_whole else None
    return Awaited(dtype, count, looked_at, all_times, torch.cat(floats), together)


def _sums_on_device(numbers: Tensor) -> Tensor:
    finite = torch.nan_to_num(numbers, 0.0, 0.0, 0.0)
    others = (torch.isnan(numbers), numbers == math.inf, numbers == -math.inf)
    return torch.stack(
        [
            finite.sum(),
            finite.square().sum(),
            torch.nan_to_num(numbers, math.inf, math.inf, math.inf).amin(),
            torch.nan_to_num(numbers, -math.inf, -math.inf, -math.inf).amax(),
            *(each.sum(dtype=numbers.dtype) for each in others),
        ]
    )


def _exact_sums(numbers: Tensor) -> tuple[Tensor, Tensor]:
    """Of whole numbers, their sum and the sum of their squares, modulo 2**64."""
    if numbers.dtype is torch.bool:
        count = numbers.sum()
        return count, count
    long = numbers.to(torch.int64)
    return long.sum(), (long * long).sum()


def _checksum(total: int, squares: int) -> str:
    return f"{total & _MASK:016x}{squares & _MASK:016x}"


def _raw(
    dtype: str,
    count: int,
    looked_at: int | None,
    moments: Moments,
    samples: list[Any],
    checksum: str | None,
) -> Raw:
    others = (moments.nan, moments.positive, moments.negative)
    finite = (count if looked_at is None else looked_at) - sum(others)
    known: tuple[float | None, ...] = (None, None, None, None)
    if finite > 0:
        mean = _sum(moments.totals) / finite
        square = _sum(moments.squares) / finite
        known = (mean, math.sqrt(square), moments.low, moments.high)
    known = tuple([None if each is None or not math.isfinite(each) else each for each in known])
    kept = tuple([_sample(each) for each in samples])
    return (dtype, count, *known, kept, *others, checksum, looked_at, None)


def _sum(rows: list[float]) -> float:
    """The sum as exactly as it can be told, so that it does not matter how the rows were read."""
    try:
        return math.fsum(rows)
    except (OverflowError, ValueError) as error:
        if is_asynchronous(error):
            raise
        return math.inf


def _sample(number: Any) -> float | int | str:
    if type(number) is float:
        return number if math.isfinite(number) else str(number)
    return int(number)
