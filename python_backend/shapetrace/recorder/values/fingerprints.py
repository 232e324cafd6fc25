"""Fingerprints of what calls returned: made on the thread of the call, kept by variant."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Final

import torch

from shapetrace._asynchronous import is_asynchronous
from shapetrace._exception_table import leaving_surely
from shapetrace.recorder.turn import Turn
from shapetrace.recorder.values.inside import tensors_in
from shapetrace.recorder.values.keeping import FEWEST_CALLS, MOST_CALLS, Calls, Row
from shapetrace.recorder.values.looking import Awaited, Raw, look, unknown
from shapetrace.recorder.values.places import forget_places
from shapetrace.recorder.values.readable import dtype_of, unseen

MOST_WAITING: Final = 256
"""Calls that are put in their places together, so that a device is waited for that seldom."""

MOST_KEPT: Final = 1 << 17
"""Tensors of calls that are kept by themselves; past that, few calls of each variant are."""

_Looks = list[Raw | Awaited]


class Fingerprints:
    """All fingerprints of one recording."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, _Looks, _Looks]] = deque()
        self._sorting = Turn()
        self._calls: dict[int, Calls] = {}
        """By the identity of the variant."""
        self._kept = 0

    @leaving_surely
    def look(self, value: Any, but: str | None = None) -> _Looks:
        """What the tensors in a value hold now; ``but`` is why it means nothing."""
        tensors = tensors_in(value)
        if not tensors:
            return []
        if but is not None:
            with torch._C.DisableTorchFunction():
                return [unknown(dtype_of(tensor), 0, but) for tensor in tensors]
        return unseen(_look_at_all, tensors)

    def add(self, identity: int, outputs: _Looks, inputs: _Looks) -> None:
        """Note the next call of a variant."""
        self._waiting.append((identity, outputs, inputs))
        if len(self._waiting) >= MOST_WAITING:
            self.sort(wait=False)

    def stop(self) -> None:
        """Let go of what was only there to be quicker."""
        forget_places()

    def remake_lock(self) -> None:
        """In a process that was just forked: who held it is not here."""
        self._sorting = Turn()

    def sort(self, wait: bool = True) -> None:
        """Put the calls that wait in their places, in their order."""
        self._sorting.take(self._sort, wait)

    def _sort(self) -> None:
        if _is_capturing():
            return  # nobody may wait for a device now
        batch = list(self._waiting)
        looks = [each for call in batch for part in call[1:] for each in part]
        arrived = iter(unseen(_arrived, looks))
        for identity, *parts in batch:
            outputs, inputs = ([next(arrived) for _ in part] for part in parts)
            self._keep(identity, outputs, inputs)
            del self._waiting[0]  # Only now: an exception of the program's may come before.

    def _keep(self, identity: int, outputs: list[Raw], inputs: list[Raw]) -> None:
        calls = self._calls.get(identity)
        if calls is None:
            calls = self._calls[identity] = Calls()
        most = MOST_CALLS if self._kept < MOST_KEPT else FEWEST_CALLS
        if calls.add(outputs, inputs, most):
            self._kept += len(outputs) + len(inputs)

    def number_of(self, identity: int, count: int) -> int:
        """Of how many of the first ``count`` calls of a variant something is kept."""
        calls = self._calls.get(identity)
        return 0 if calls is None else min(calls.count, count)

    def rows_of(self, identity: int, count: int) -> list[Row]:
        """What is kept of the first ``count`` calls of a variant."""
        calls = self._calls.get(identity)
        return [] if calls is None else calls.rows(count)


def _look_at_all(tensors: list[Any]) -> _Looks:
    return [look(tensor) for tensor in tensors]


def _arrived(looks: _Looks) -> list[Raw]:
    """Each fingerprint in its order, with what was computed on devices."""
    awaited = [each for each in looks if isinstance(each, Awaited)]
    values: dict[int, Raw] = {}
    by_device: dict[Any, list[Awaited]] = {}
    for each in awaited:
        by_device.setdefault((each.floats.device, each.floats.dtype), []).append(each)
    for group in by_device.values():
        try:
            values.update(_read(group))
        except RuntimeError as error:  # it has failed, or is out of reach in a fork
            if is_asynchronous(error):
                raise
            reason = f"its device does not answer: {type(error).__name__}"
            values.update((id(each), unknown(each.dtype, each.count, reason)) for each in group)
    return [values[id(each)] if isinstance(each, Awaited) else each for each in looks]


def _read(group: list[Awaited]) -> Iterator[tuple[int, Raw]]:
    """What was computed on one device, by the identity of what awaits it."""
    for stream in {each.stream for each in group if each.stream is not None}:
        stream.synchronize()
    floats = iter(torch.cat([each.floats for each in group]).tolist())
    whole = [each.integers for each in group if each.integers is not None]
    integers = iter(torch.cat(whole).tolist() if whole else ())
    for each in group:
        own = [next(floats) for _ in range(each.floats.numel())]
        exact = 0 if each.integers is None else each.integers.numel()
        yield id(each), each.raw(own, [next(integers) for _ in range(exact)])


def _is_capturing() -> bool:
    cuda: Any = torch.cuda
    return bool(cuda.is_initialized() and cuda.is_current_stream_capturing())
