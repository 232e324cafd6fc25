"""The fingerprints of a variant's calls, in little memory however many calls there are.

Each of the first calls is kept by itself. The later ones are put together, always as many as there
were before: calls 65 to 128, 129 to 256, and so on. Of each such row of calls there are moments of
all their numbers, samples whose weights depend on which call they are of, and a digest: so that one
call among them that differs is noticed, if not which.
"""

from __future__ import annotations

import marshal
import math
import zlib
from typing import Any, Final

from shapetrace.recorder.values.looking import Raw, unknown

MOST_CALLS: Final = 64
"""Calls of one variant that are kept by themselves."""

FEWEST_CALLS: Final = 4
"""`MOST_CALLS` once much is kept of other variants."""

_GOLDEN: Final = 0.6180339887498949
_MASK: Final = (1 << 64) - 1

Row = tuple[Any, ...]
"""First call, last call, raw fingerprints of outputs and of inputs, digest."""


class Calls:
    """What is kept of one variant's calls."""

    __slots__ = ("count", "groups", "single")

    def __init__(self) -> None:
        self.count = 0
        self.single: list[bytes] = []
        """Of each of the first calls, the outputs and the inputs."""
        self.groups: list[Group] = []

    def add(self, outputs: list[Raw], inputs: list[Raw], most: int) -> bool:
        """Add the next call; whether it was kept by itself."""
        # Version 2 writes equal values alike, whoever else holds them.
        packed = marshal.dumps((outputs, inputs), 2)
        self.count += 1
        if not self.groups and len(self.single) < most:
            self.single.append(packed)
            return True
        if not self.groups or self.groups[-1].is_full:
            self.groups.append(Group(self.count))
        self.groups[-1].add(packed, outputs)
        return False

    def rows(self, count: int) -> list[Row]:
        """What is kept of the first ``count`` calls."""
        rows: list[Row] = []
        for index, packed in enumerate(self.single[:count]):
            outputs, inputs = marshal.loads(packed)
            rows.append((index + 1, index + 1, outputs, inputs, None))
        for group in self.groups:
            if group.first + group.count - 1 <= count:
                rows.append(group.row())
        return rows


class Group:
    """Calls in a row that are put together."""

    __slots__ = ("count", "digest", "first", "tensors")

    def __init__(self, first: int) -> None:
        self.first = first
        self.count = 0
        self.digest = 0
        self.tensors: list[_Together] = []

    @property
    def is_full(self) -> bool:
        """Whether as many calls are in it as there were before it."""
        return self.count == self.first - 1

    def add(self, packed: bytes, outputs: list[Raw]) -> None:
        """Add the next call."""
        self.digest = zlib.crc32(packed, self.digest)
        weight = 1 + self.count * _GOLDEN % 1
        self.count += 1
        while len(self.tensors) < len(outputs):
            self.tensors.append(_Together())
        for tensor, raw in zip(self.tensors, outputs, strict=False):
            tensor.add(raw, weight)

    def row(self) -> Row:
        """The group as it is now."""
        outputs = [tensor.raw() for tensor in self.tensors]
        return (self.first, self.first + self.count - 1, outputs, [], f"{self.digest:08x}")


class _Together:
    """The fingerprints of one output in several calls."""

    __slots__ = (
        *("checksum", "count", "dtype", "finite", "high", "looked_at", "low", "note"),
        *("others", "samples", "squares", "total", "weight"),
    )

    def __init__(self) -> None:
        self.dtype = ""
        self.count = self.looked_at = self.finite = 0
        self.total = self.squares = self.weight = 0.0
        self.low, self.high = math.inf, -math.inf
        self.others: tuple[int, ...] = (0, 0, 0)
        self.samples: list[float] = []
        self.checksum: int | None = None
        self.note: str | None = None

    def add(self, raw: Raw, weight: float) -> None:
        dtype, count, mean, size, low, high, samples, *others, checksum, looked_at, note = raw
        self.dtype = dtype if self.dtype in ("", dtype) else "mixed"
        self.note = self.note or note
        self.count += count
        read = count if looked_at is None else looked_at
        self.looked_at += read
        self.others = tuple(map(int.__add__, self.others, others))
        if mean is not None:
            finite = read - sum(others)
            self.finite += finite
            self.total += mean * finite
            self.squares += (math.inf if size is None else size * size) * finite
            self.low, self.high = min(self.low, low), max(self.high, high)
        weighted = [weight * float(sample) for sample in samples]
        if not self.weight:
            self.samples = weighted
        else:  # of the places that all have
            self.samples = [one + other for one, other in zip(self.samples, weighted, strict=False)]
        self.weight += weight
        if checksum is not None:
            self.checksum = (self.checksum or 0) + int(checksum, 16)

    def raw(self) -> Raw:
        if self.note is not None:
            return unknown(self.dtype, self.count, self.note)
        known: tuple[float | None, ...] = (None, None, None, None)
        if self.finite:
            size = math.sqrt(self.squares / self.finite)
            known = (self.total / self.finite, size, self.low, self.high)
        known = tuple([None if each is None or not math.isfinite(each) else each for each in known])
        means = [sample / self.weight for sample in self.samples]
        samples = tuple([each if math.isfinite(each) else str(each) for each in means])
        checksum = None if self.checksum is None else f"{self.checksum % (1 << 128):032x}"
        looked_at = None if self.looked_at == self.count else self.looked_at
        return (self.dtype, self.count, *known, samples, *self.others, checksum, looked_at, None)
