"""A callback that keeps statistics in place of values: shapes, ranges, iterations and ranks."""

from __future__ import annotations

import sys
from typing import Any, Final

import torch

from shapetrace._asynchronous import is_asynchronous
from shapetrace._classes import name_of
from shapetrace.capture.copies import is_there, lost_memory, steady, unseen_among
from shapetrace.events.captured import (
    CapturedFile,
    CapturedLeaf,
    CapturedName,
    CapturedPart,
    Histogram,
    Statistics,
)
from shapetrace.events.model import Container, Dimension, DimensionRange, Other, Tensor, Value
from shapetrace.inspecting.stable_reads import MemoryGoneError
from shapetrace.inspecting.statistics import Statistics as Numbers

_BINS: Final = 16
_NUMBERS_OF_A_VALUE: Final = 256
_MOST_SAMPLED: Final = 1 << 14
"""Numbers that are kept of an array to draw its histogram."""
_MOST_PARTS: Final = 64
"""Limit on the structures of one name that are counted separately."""


class Tally:
    """Counts values and lets them go."""

    def __init__(self) -> None:
        self._names: dict[str, _Name] = {}

    def __call__(
        self, name: str, values: list[Any], iterations: list[int], ranks: list[int]
    ) -> None:
        """As a ``post_gather`` callback."""
        known = self._names.setdefault(name, _Name())
        known.iterations.update((min(iterations), max(iterations)) if iterations else ())
        known.ranks.update(ranks)
        taken = [_taken_apart(value) for value in values]
        # One context for all values, so that the program's modes and graphs notice none.
        with unseen_among(leaf for _, leaves in taken for _, leaf in leaves):
            for shape, leaves in taken:
                known.add(shape, leaves)
        for emptied in (values, iterations, ranks):
            emptied.clear()

    @property
    def has_any(self) -> bool:
        """Whether anything has come."""
        return bool(self._names)

    def summary(self, title: str) -> CapturedFile:
        """The summary, in the form of a file's."""
        names = tuple(known.summary(name) for name, known in sorted(self._names.items()))
        size = sum(part.bytes for known in self._names.values() for part in known.parts.values())
        return CapturedFile(title, size, names)


class _Name:
    """Statistics of one name."""

    def __init__(self) -> None:
        self.iterations: set[int] = set()
        self.ranks: set[int] = set()
        self.parts: dict[object, _Part] = {}

    def add(self, shape: Any, leaves: list[tuple[str, Any]]) -> None:
        """Add the structure and leaves of a value."""
        key = (shape, tuple((path, _kind_of(leaf)) for path, leaf in leaves))
        if key not in self.parts and len(self.parts) >= _MOST_PARTS:
            self.parts[next(reversed(self.parts))].count += 1  # Too many to keep apart.
            return
        part = self.parts.setdefault(key, _Part(shape, len(leaves)))
        part.add(leaves)
        self.iterations = {min(self.iterations), max(self.iterations)} if self.iterations else set()

    def summary(self, name: str) -> CapturedName:
        parts = sorted(self.parts.values(), key=lambda part: -part.count)
        return CapturedName(
            name=name,
            count=sum(part.count for part in parts),
            first_iteration=min(self.iterations, default=None),
            last_iteration=max(self.iterations, default=None),
            ranks=tuple(sorted(self.ranks)),
            parts=tuple(part.summary() for part in parts),
        )


class _Part:
    """Values of one structure."""

    def __init__(self, shape: Any, leaves: int) -> None:
        self.count = 0
        self.bytes = 0
        self._shape = shape
        self._leaves = [_Leaf() for _ in range(leaves)]

    def add(self, leaves: list[tuple[str, Any]]) -> None:
        self.count += 1
        for leaf, (path, value) in zip(self._leaves, leaves, strict=True):
            self.bytes += leaf.add(path, value)

    def summary(self) -> CapturedPart:
        made = [leaf.summary() for leaf in self._leaves]
        values = iter([leaf.value for leaf in made])
        return CapturedPart(_put_together(self._shape, values), self.count, tuple(made))


class _Leaf:
    """One array or number in values of one structure."""

    def __init__(self) -> None:
        self._path = ""
        self._dtype = ""
        self._low: list[int] = []
        self._high: list[int] = []
        self._is_tensor = False
        self._total = 0
        self._numbers = Numbers()
        self._sample: list[float] = []
        self._is_magnitude = False

    def add(self, path: str, value: Any) -> int:
        """Add an array or a number; return its size in bytes."""
        self._path = path
        tensor = _as_tensor(value)
        self._is_tensor = isinstance(value, torch.Tensor) or hasattr(value, "shape")
        self._dtype = _kind_of(value)
        if tensor is None:
            return len(value) if isinstance(value, (str, bytes)) else 0
        try:
            sizes = list(tensor.shape)
        except RuntimeError as error:
            if is_asynchronous(error):
                raise
            return 0  # Nested, or not initialized before the first call: it has no shape.
        self._low = list(map(min, self._low, sizes)) if self._low else sizes
        self._high = list(map(max, self._high, sizes)) if self._high else sizes
        self._total += tensor.numel()
        try:
            self._count(tensor)
        except (RuntimeError, TypeError, ValueError) as error:
            if is_asynchronous(error):  # torch cannot compute with it otherwise
                raise
        return tensor.numel() * tensor.element_size()

    def _count(self, tensor: torch.Tensor) -> None:
        if tensor.is_meta or lost_memory(tensor):
            return
        try:
            numbers = steady(tensor.detach()).reshape(-1)
        except MemoryGoneError:
            return
        if numbers.dtype.is_complex:
            numbers, self._is_magnitude = numbers.abs(), True
        before = self._numbers.finite
        self._numbers.add_tensor(numbers, torch)
        finite = self._numbers.finite - before
        if not finite:
            return
        if finite < numbers.numel():
            # Random, as even steps would miss most columns of a regular mask of infinities.
            numbers = numbers.to(torch.float64)
            numbers = numbers[torch.isfinite(numbers)]
        step = -(-finite // _NUMBERS_OF_A_VALUE)
        self._sample.extend(numbers[::step].to(torch.float64).tolist())
        if len(self._sample) > _MOST_SAMPLED:
            self._sample = self._sample[::2]

    def summary(self) -> CapturedLeaf:
        if not self._is_tensor:
            value: Value = Other(self._dtype)
        else:
            pairs = zip(self._low, self._high, strict=True)
            sizes: tuple[Dimension, ...] = tuple(
                low if low == high else DimensionRange(low, high) for low, high in pairs
            )
            value = Tensor(sizes, self._dtype)
        return CapturedLeaf(self._path, value, self._statistics() if self._numbers.seen else None)

    def _statistics(self) -> Statistics:
        found = self._numbers
        return Statistics(
            total=self._total,
            looked_at=found.seen,
            low=float(found.low) if found.finite else None,
            high=float(found.high) if found.finite else None,
            mean=found.total / found.finite if found.finite else None,
            not_numbers=found.nan,
            infinite=found.infinite,
            histogram=self._histogram(),
            is_magnitude=self._is_magnitude,
        )

    def _histogram(self) -> Histogram | None:
        low, high = float(self._numbers.low), float(self._numbers.high)
        if not low < high:
            return None
        counts = [0] * _BINS
        width = (high / 2 - low / 2) / _BINS or 1.0
        for number in self._sample:
            counts[min(int((number / 2 - low / 2) / width), _BINS - 1)] += 1
        return Histogram(low, high, tuple(counts))


def _taken_apart(value: Any) -> tuple[Any, list[tuple[str, Any]]]:
    """The structure of a value, and its leaves with their paths."""
    leaves: list[tuple[str, Any]] = []
    return _structure_of(value, "", leaves), leaves


def _structure_of(value: Any, path: str, leaves: list[tuple[str, Any]]) -> Any:
    keys: tuple[str, ...] | None = None
    items: Any
    if isinstance(value, dict):
        keys = tuple(map(str, value))
        items = value.values()
        kind = "dict"
    elif isinstance(value, (list, tuple)):
        items = value
        kind = name_of(type(value))
    else:
        leaves.append((path, value))
        return None
    names = keys or range(len(items))
    inside = tuple(
        _structure_of(item, f"{path}.{name}", leaves)
        for name, item in zip(names, items, strict=True)
    )
    return (kind, keys, inside)


def _put_together(shape: Any, values: Any) -> Value:
    if shape is None:
        found: Value = next(values)
        return found
    kind, keys, inside = shape
    return Container(kind, tuple(_put_together(each, values) for each in inside), keys)


def _kind_of(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}"
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray):
        return str(value.dtype)
    if isinstance(value, str) and value.startswith("<") and value.endswith(">"):
        return value  # The text that stands for a module or another object.
    return "None" if value is None else name_of(type(value))


def _as_tensor(value: Any) -> torch.Tensor | None:
    if isinstance(value, torch.Tensor):
        return value
    if type(value) in (int, float, bool, complex):
        try:
            return torch.tensor(value)
        except (RuntimeError, OverflowError) as error:
            if is_asynchronous(error):
                raise
            return None
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray):
        try:
            if not is_there(value, numpy):
                dtype = torch.from_numpy(numpy.empty(0, value.dtype)).dtype
                return torch.empty(value.shape, dtype=dtype, device="meta")
            return torch.from_numpy(value.copy())
        except TypeError as error:
            if is_asynchronous(error):
                raise
            return None
    return None
