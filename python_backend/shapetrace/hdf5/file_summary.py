"""Summarizes a file of captured values: shapes, iterations, ranks and statistics."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import BinaryIO

from shapetrace.events.captured import CapturedFile, CapturedLeaf, CapturedName, CapturedPart
from shapetrace.events.model import Container, Dimension, DimensionRange, Other, Tensor, Value
from shapetrace.hdf5.column_statistics import BYTE_BUDGET, StatisticsOptions, nothing, statistics_of
from shapetrace.hdf5.columns import Column
from shapetrace.hdf5.encoding import Structure
from shapetrace.hdf5.entries import Part
from shapetrace.hdf5.reading import PlacedPart, opened

_PLAIN = frozenset(("int", "float", "bool", "complex", "str", "bytes", "NoneType"))


def read_summary(
    path: str | os.PathLike[str],
    byte_budget: int = BYTE_BUDGET,
    *,
    bins: int = 16,
    content: BinaryIO | None = None,
    on_progress: Callable[[], None] = nothing,
) -> CapturedFile:
    """The summary of a file; statistics of large ones are from a part of the numbers.

    All of them may take equally much of the budget of bytes; it is spread over the rows of each.
    """
    with opened(path, content) as contents:
        groups = {name: _alike(parts) for name, parts in sorted(contents.names.items())}
        columns = [
            column for those in groups.values() for group in those for column in _columns(group)
        ]
        sizes = sorted(sum(each.stored_bytes for each in column) for column in columns)
        looking = StatisticsOptions(_share(sizes, byte_budget), bins, on_progress)
        names = tuple(_name(name, those, looking) for name, those in groups.items())
        return CapturedFile(
            os.path.basename(path), contents.size, names, contents.missing, contents.problems
        )


def _alike(parts: Iterable[PlacedPart]) -> list[list[Part]]:
    """Parts of several files that have one structure."""
    groups: dict[tuple[str, bool], list[Part]] = {}
    for each in parts:
        groups.setdefault((each.part.structure, each.part.is_flat), []).append(each.part)
    return list(groups.values())


def _columns(group: Sequence[Part]) -> list[tuple[Column, ...]]:
    """Each column of alike parts, of all of them."""
    return list(zip(*(part.columns for part in group), strict=True))


def _share(sizes: list[int], budget: int) -> int:
    """The share of the budget for each, where small ones leave their rest to large ones."""
    for position, size in enumerate(sizes):
        share = budget // (len(sizes) - position)
        if size > share:
            return max(share, 1 << 16)
        budget -= size
    return max(sizes, default=0)


def _name(name: str, groups: list[list[Part]], looking: StatisticsOptions) -> CapturedName:
    parts = [part for group in groups for part in group]
    iterations = [part.beside["iterations"].different() for part in parts]
    ranks: set[int] = set()
    for part in parts:
        ranks.update(part.beside["ranks"].different().tolist())
        looking.on_progress()
    return CapturedName(
        name=name,
        count=sum(part.rows for part in parts),
        first_iteration=min((int(each.min()) for each in iterations if each.size), default=None),
        last_iteration=max((int(each.max()) for each in iterations if each.size), default=None),
        ranks=tuple(sorted(ranks)),
        parts=_merged([_part(group, looking) for group in groups]),
    )


def _part(group: list[Part], looking: StatisticsOptions) -> CapturedPart:
    columns = iter(_columns(group))
    leaves: list[CapturedLeaf] = []
    value = _value(group[0].tree, columns, "", leaves, looking)
    return CapturedPart(value, sum(part.rows for part in group), tuple(leaves))


def _value(
    tree: Structure,
    columns: Iterator[tuple[Column, ...]],
    path: str,
    leaves: list[CapturedLeaf],
    looking: StatisticsOptions,
) -> Value:
    if "items" not in tree:
        column = next(columns)
        value = _leaf_value(tree, column)
        leaves.append(CapturedLeaf(path, value, statistics_of(column, tree, looking)))
        return value
    keys = tree.get("keys")
    names = None if keys is None else [key if isinstance(key, str) else key[1] for key in keys]
    items = [
        _value(item, columns, f"{path}.{names[at] if names else at}", leaves, looking)
        for at, item in enumerate(tree["items"])
    ]
    kind = tree["kind"]
    if "class" in tree:
        kind = tree["class"].rpartition(".")[2]
    # Of the components of a sparse or quantized tensor, its values say most.
    if kind in ("quantized", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"):
        return Container(kind, tuple(items[:-1]), tuple(names or ())[:-1])
    return Container(kind, tuple(items), None if names is None else tuple(names))


def _leaf_value(leaf: Structure, column: Sequence[Column]) -> Value:
    kind, dtype = leaf["kind"], leaf["dtype"]
    if kind in _PLAIN:
        return Other("None" if kind == "NoneType" else kind)
    if kind in ("list", "tuple", "set", "frozenset"):
        lengths = _dimensions(column)
        length = lengths[0] if lengths else 0
        count = f"{length.low}..{length.high}" if isinstance(length, DimensionRange) else length
        return Container(kind, (Other(f"{leaf['of']} ×{count}"),))
    return Tensor(_dimensions(column), dtype, kind="ndarray" if kind == "ndarray" else "Tensor")


def _dimensions(column: Sequence[Column]) -> tuple[Dimension, ...]:
    lows: list[list[int]] = []
    highs: list[list[int]] = []
    for each in column:
        shapes = each.all_shapes() if each.has_shapes else None
        if shapes is not None and len(shapes):
            lows.append(shapes.min(axis=0).tolist())
            highs.append(shapes.max(axis=0).tolist())
        elif each.rows or len(column) == 1:
            shape = [int(size) for size in each.dataset.shape[1:]]
            lows.append(shape)
            highs.append(shape)
    pairs = zip(map(min, *lows, lows[0]), map(max, *highs, highs[0]), strict=True) if lows else ()
    return tuple(low if low == high else DimensionRange(low, high) for low, high in pairs)


def _merged(parts: list[CapturedPart]) -> tuple[CapturedPart, ...]:
    """Merged parts, the one with most values first."""
    return tuple(sorted(parts, key=lambda part: -part.count))
