"""The numbers of a column in figures, read piece by piece."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from shapetrace.capture.hdf5.columns import Column
from shapetrace.capture.hdf5.encoding import Structure
from shapetrace.events.captured import Histogram, Statistics

BYTE_BUDGET: Final = 1 << 28
"""How much of a file is looked at."""

_PIECE: Final = 1 << 22
"""Bytes that are read at once."""

_PIECES: Final = 16
"""In how many places at least a large column is looked at, if rows are not too long for that."""


def statistics_of(column: Column, leaf: Structure, share: int, bins: int) -> Statistics | None:
    """Figures of a column's numbers, of at most so many bytes of them; None for what is no number.

    Numbers are read twice, first for their range.
    """
    import numpy

    if column.is_text or leaf["kind"] in ("NoneType", "bytes", "str"):
        return None
    if leaf["dtype"].startswith(("|S", "<m", "<M", ">m", ">M", "record")):
        return None
    with numpy.errstate(all="ignore"):
        return _figures(column, leaf, share, bins)


def _figures(column: Column, leaf: Structure, share: int, bins: int) -> Statistics:
    import numpy

    looked_at = finite = not_numbers = infinite = 0
    low, high, sum_ = math.inf, -math.inf, 0.0
    is_magnitude = False
    for piece in _pieces(column, leaf, share):
        is_magnitude = is_magnitude or piece.dtype.kind == "c"
        numbers, not_number_count, infinite_count = _finite(piece)
        looked_at += piece.size
        not_numbers += not_number_count
        infinite += infinite_count
        if numbers.size:
            low = min(low, numbers.min().item())
            high = max(high, numbers.max().item())
            sum_ += float(numbers.sum(dtype="f8"))
            finite += numbers.size
    total = _total(column)
    if not finite:
        return Statistics(total, looked_at, None, None, None, not_numbers, infinite)
    counts = numpy.zeros(bins, "i8")
    if low < high:
        edges = (float(low), float(high))
        for piece in _pieces(column, leaf, share):
            numbers, _, _ = _finite(piece)
            counts += _counts(numbers, edges, bins)
    return Statistics(
        total=total,
        looked_at=looked_at,
        low=low,
        high=high,
        mean=sum_ / finite,
        not_numbers=not_numbers,
        infinite=infinite,
        histogram=Histogram(low, high, tuple(counts.tolist())) if low < high else None,
        is_magnitude=is_magnitude,
    )


def _counts(numbers: Any, edges: tuple[float, float], bins: int) -> Any:
    import numpy

    # Not by their difference, which may be more than a float can have.
    scaled = numbers.astype("f8") / 2 - edges[0] / 2
    width = edges[1] / 2 - edges[0] / 2
    places = numpy.clip((scaled / width * bins).astype("i8"), 0, bins - 1)
    return numpy.bincount(places.reshape(-1), minlength=bins)


def _finite(piece: Any) -> tuple[Any, int, int]:
    """The finite numbers of a piece, and how many are not."""
    import numpy

    if piece.dtype.kind == "b":
        return piece.view("u1"), 0, 0
    if piece.dtype.kind in "iu":
        return piece, 0, 0
    if piece.dtype.kind == "c":
        piece = numpy.abs(piece)
    if piece.dtype.itemsize < 4:
        piece = piece.astype("f4")
    is_finite = numpy.isfinite(piece)
    if is_finite.all():
        return piece, 0, 0
    not_numbers = int(numpy.isnan(piece).sum())
    return piece[is_finite], not_numbers, int(piece.size - is_finite.sum()) - not_numbers


def _total(column: Column) -> int:
    if column.is_flat:
        return int(column.dataset.shape[0])
    if column.has_shapes:
        return int(column.all_shapes().prod(axis=1).sum())
    return int(math.prod(column.dataset.shape))


def _pieces(column: Column, leaf: Structure, share: int) -> Iterator[Any]:
    """The numbers in pieces, without padding; of too many, rows at equal distances."""
    dataset = column.dataset
    row_bytes = max(math.prod(dataset.shape[1:]) * dataset.dtype.itemsize, 1)
    rows = dataset.shape[0]
    is_too_much = rows * row_bytes > share
    # Of too many, short pieces: what is near to each other is often alike.
    at_once = max((share // _PIECES if is_too_much else _PIECE) // row_bytes, 1)
    starts = range(0, rows, at_once)
    most = max(share // (row_bytes * at_once), 1)
    step = -(-len(starts) // most) if is_too_much else 1
    shapes = column.all_shapes() if column.has_shapes and not column.is_flat else None
    for start in starts[::step]:
        piece = dataset[start : start + at_once]
        if shapes is None:
            yield as_numbers(piece, leaf)
            continue
        for row, shape in zip(piece, shapes[start : start + at_once], strict=True):
            yield as_numbers(row[tuple(slice(0, int(size)) for size in shape)], leaf)


def as_numbers(array: Any, leaf: Structure) -> Any:
    """What was stored as bits as the numbers that it stands for."""
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
