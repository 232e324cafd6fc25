"""Statistics of a column, read piece by piece."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from shapetrace._exception_table import leaving_surely
from shapetrace.events.captured import Histogram, Statistics
from shapetrace.hdf5.columns import Column
from shapetrace.hdf5.encoding import Structure
from shapetrace.inspecting.statistics import Statistics as Numbers
from shapetrace.inspecting.statistics import comparable_array, histogram

BYTE_BUDGET: Final = 1 << 28
"""Limit on the bytes of a file that are read."""

_PIECE: Final = 1 << 22
"""Bytes read at once."""

_LEAST_ROW: Final = 64
_PIECES: Final = 16
"""Least number of places that a large column is read at, unless rows are too long."""


def nothing() -> None:
    """Progress is not reported."""


@dataclass(frozen=True, slots=True)
class StatisticsOptions:
    """Options for computing statistics."""

    share: int
    """Bytes of a column that may be read."""
    bins: int
    on_progress: Callable[[], None] = nothing
    """Called for each piece that was read."""


@leaving_surely
def statistics_of(
    column: Sequence[Column], leaf: Structure, looking: StatisticsOptions
) -> Statistics | None:
    """Statistics of a column that may be spread over files; None if it has no numbers.

    Numbers are read twice, first for their range.
    """
    import numpy

    if any(each.is_text for each in column) or leaf["kind"] in ("NoneType", "bytes", "str"):
        return None
    if leaf["dtype"].startswith(("|S", "<m", "<M", ">m", ">M", "record")):
        return None
    with numpy.errstate(all="ignore"):
        return _figures(column, leaf, looking)


def _figures(column: Sequence[Column], leaf: Structure, looking: StatisticsOptions) -> Statistics:
    import numpy

    stored = max(sum(each.stored_bytes for each in column), 1)

    def pieces() -> Iterator[Any]:
        for each in column:
            for piece in _pieces(each, leaf, -(-looking.share * each.stored_bytes // stored)):
                looking.on_progress()
                yield piece

    found = Numbers()
    is_magnitude = False
    for piece in pieces():
        is_magnitude = is_magnitude or piece.dtype.kind == "c"
        found.add(_real(piece), numpy)
    low, high = found.low, found.high
    counts = numpy.zeros(looking.bins, "i8")
    if low < high:
        for piece in pieces():
            counts += histogram(_real(piece).astype("f8"), low, high, looking.bins, numpy)
    return Statistics(
        total=sum(map(_total, column)),
        looked_at=found.seen,
        low=low if found.finite else None,
        high=high if found.finite else None,
        mean=found.total / found.finite if found.finite else None,
        not_numbers=found.nan,
        infinite=found.infinite,
        histogram=Histogram(low, high, tuple(counts.tolist())) if low < high else None,
        is_magnitude=is_magnitude and bool(found.finite),
    )


def _real(piece: Any) -> Any:
    """Comparable numbers: for complex ones, their magnitudes."""
    return comparable_array(abs(piece) if piece.dtype.kind == "c" else piece)


def _total(column: Column) -> int:
    if column.is_flat:
        return int(column.dataset.shape[0])
    if column.has_shapes:
        return int(column.all_shapes().prod(axis=1).sum())
    return int(math.prod(column.dataset.shape))


def _pieces(column: Column, leaf: Structure, share: int) -> Iterator[Any]:
    """The numbers in pieces, without padding; of too many, pieces at equal distances."""
    dataset = column.dataset
    if not math.prod(dataset.shape):
        return
    if column.has_shapes and not column.is_flat:
        yield from _pieces_of_rows(column, leaf, share)
        return
    for place in _places(dataset.shape, dataset.dtype.itemsize, share):
        yield as_numbers(dataset[place], leaf)


def _pieces_of_rows(column: Column, leaf: Structure, share: int) -> Iterator[Any]:
    """The numbers of rows that differ in size."""
    dataset = column.dataset
    size = dataset.dtype.itemsize
    # Each row takes some time, however little is in it.
    row_bytes = max(math.prod(dataset.shape[1:]) * size, _LEAST_ROW)
    shapes = column.all_shapes()
    for (rows,) in _places((len(shapes),), row_bytes, max(share, row_bytes)):
        if row_bytes <= _PIECE:
            piece = dataset[rows]
            for row, shape in zip(piece, shapes[rows], strict=True):
                yield as_numbers(row[tuple(slice(0, int(each)) for each in shape)], leaf)
            continue
        for number in range(rows.start, rows.stop):
            shape = tuple(map(int, shapes[number]))
            if math.prod(shape):
                for place in _places(shape, size, share):
                    yield as_numbers(dataset[(number, *place)], leaf)


def _places(shape: tuple[int, ...], size: int, share: int) -> Iterator[tuple[slice, ...]]:
    """The blocks of an array, of which some at equal distances where all is more than the share.

    A block is no larger than a piece, but for an item that is.
    """
    is_too_much = math.prod(shape) * size > share
    # Of too many, short pieces: what is near to each other is often alike.
    piece = min(share // _PIECES, _PIECE) if is_too_much else _PIECE
    axis, inner = 0, math.prod(shape[1:]) * size
    while inner > piece and axis < len(shape) - 1:
        axis += 1
        inner //= shape[axis]
    at_once = max(piece // inner, 1)
    along = -(-shape[axis] // at_once)
    count = math.prod(shape[:axis]) * along
    most = max(share // (inner * at_once), 1)
    for number in range(0, count, -(-count // most) if is_too_much else 1):
        outer, part = divmod(number, along)
        start = part * at_once
        place = [slice(start, min(start + at_once, shape[axis]))]
        for length in reversed(shape[:axis]):
            outer, index = divmod(outer, length)
            place.insert(0, slice(index, index + 1))
        yield tuple(place)


def as_numbers(array: Any, leaf: Structure) -> Any:
    """Numbers that were stored as bits."""
    import numpy

    dtype = leaf["dtype"]
    if "stored" not in leaf or array.dtype.kind not in "u":
        return array
    if dtype == "complex32":
        parts = numpy.ascontiguousarray(array).view("f2").astype("f4")
        return parts.view("c8").reshape(array.shape)
    return _table(dtype)[array] if array.dtype.itemsize == 1 else array


def _table(dtype: str) -> Any:
    """The 256 numbers of a float8 type; other types of one byte are left as they are."""
    import numpy

    bits = numpy.arange(256)
    if dtype == "float8_e8m0fnu":
        table = numpy.exp2(bits.astype("f8") - 127)
        table[255] = numpy.nan
        return table
    exponent_bits = {"float8_e4m3fn": 4, "float8_e4m3fnuz": 4, "float8_e5m2fnuz": 5}.get(dtype)
    if exponent_bits is None:
        return bits.astype("u1")
    mantissa_bits = 7 - exponent_bits
    is_without_zero = dtype.endswith("uz")
    bias = 2 ** (exponent_bits - 1) - (0 if is_without_zero else 1)
    exponent = (bits & 0x7F) >> mantissa_bits
    mantissa = (bits & (2**mantissa_bits - 1)) / 2**mantissa_bits
    normal = (1 + mantissa) * numpy.exp2(exponent.astype("f8") - bias)
    table = numpy.where(exponent == 0, mantissa * 2.0 ** (1 - bias), normal)
    table = numpy.where(bits & 0x80, -table, table)
    table[[0x80] if is_without_zero else [0x7F, 0xFF]] = numpy.nan
    return table
