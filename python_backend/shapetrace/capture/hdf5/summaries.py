"""What is in a file of captured values: shapes, when and where from, and what the numbers are."""

from __future__ import annotations

import os
from typing import Any

from shapetrace.capture.hdf5.columns import Column
from shapetrace.capture.hdf5.encoding import Structure
from shapetrace.capture.hdf5.entries import Entry, Layout, Part, entries_of
from shapetrace.capture.hdf5.figures import BYTE_BUDGET, statistics_of
from shapetrace.capture.hdf5.reading import opened
from shapetrace.capture.hdf5.shards import MISSING, shards_of
from shapetrace.capture.hdf5.storage import PROBLEMS
from shapetrace.events.captured import CapturedFile, CapturedLeaf, CapturedName, CapturedPart
from shapetrace.events.model import Container, Dimension, DimensionRange, Other, Tensor, Value

_PLAIN = frozenset(("int", "float", "bool", "complex", "str", "bytes", "NoneType"))


def read_summary(
    path: str | os.PathLike[str], byte_budget: int = BYTE_BUDGET, *, bins: int = 16
) -> CapturedFile:
    """Everything worth knowing about a file; of large ones, a part of the numbers is looked at.

    All of them may take equally much of the budget of bytes; it is spread over the rows of each.
    """
    with opened(path) as file:
        entries = sorted(entries_of(file, Layout()).items())
        columns = [
            column for _, entry in entries for part in entry.parts for column in part.columns
        ]
        share = _share(sorted(column.stored_bytes for column in columns), byte_budget)
        names = tuple(_name(name, entry, share, bins) for name, entry in entries)
        missing = tuple(int(rank) for rank in file.attrs.get(MISSING, ()))
        problems = list(filter(None, str(file.attrs.get(PROBLEMS, "")).splitlines()))
    size = os.stat(path).st_size
    for shard in shards_of(os.fspath(path)).values():
        size += os.stat(shard).st_size
        with opened(shard) as file:
            problems += filter(None, str(file.attrs.get(PROBLEMS, "")).splitlines())
    return CapturedFile(os.path.basename(path), size, names, missing, tuple(problems))


def _share(sizes: list[int], budget: int) -> int:
    """How much of each may be looked at, so that what small ones leave is there for large ones."""
    for position, size in enumerate(sizes):
        share = budget // (len(sizes) - position)
        if size > share:
            return max(share, 1 << 16)
        budget -= size
    return max(sizes, default=0)


def _name(name: str, entry: Entry, share: int, bins: int) -> CapturedName:
    iterations = [part.beside["iterations"].different() for part in entry.parts]
    ranks: set[int] = set()
    for part in entry.parts:
        ranks.update(part.beside["ranks"].different().tolist())
    return CapturedName(
        name=name,
        count=sum(part.rows for part in entry.parts),
        first_iteration=min((int(each.min()) for each in iterations if each.size), default=None),
        last_iteration=max((int(each.max()) for each in iterations if each.size), default=None),
        ranks=tuple(sorted(ranks)),
        parts=_merged([_part(part, share, bins) for part in entry.parts]),
    )


def _part(part: Part, share: int, bins: int) -> CapturedPart:
    columns = iter(part.columns)
    leaves: list[CapturedLeaf] = []
    value = _value(part.tree, columns, "", leaves, share, bins)
    return CapturedPart(value, part.rows, tuple(leaves))


def _value(
    tree: Structure, columns: Any, path: str, leaves: list[CapturedLeaf], share: int, bins: int
) -> Value:
    if "items" not in tree:
        column = next(columns)
        value = _leaf_value(tree, column)
        leaves.append(CapturedLeaf(path, value, statistics_of(column, tree, share, bins)))
        return value
    keys = tree.get("keys")
    names = None if keys is None else [key if isinstance(key, str) else key[1] for key in keys]
    items = [
        _value(item, columns, f"{path}.{names[at] if names else at}", leaves, share, bins)
        for at, item in enumerate(tree["items"])
    ]
    kind = tree["kind"]
    if "class" in tree:
        kind = tree["class"].rpartition(".")[2]
    # Of what a sparse or quantized tensor is made, its values say most.
    if kind in ("quantized", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"):
        return Container(kind, tuple(items[:-1]), tuple(names or ())[:-1])
    return Container(kind, tuple(items), None if names is None else tuple(names))


def _leaf_value(leaf: Structure, column: Column) -> Value:
    kind, dtype = leaf["kind"], leaf["dtype"]
    if kind in _PLAIN:
        return Other("None" if kind == "NoneType" else kind)
    if kind in ("list", "tuple", "set", "frozenset"):
        lengths = _dimensions(column)
        length = lengths[0] if lengths else 0
        count = f"{length.low}..{length.high}" if isinstance(length, DimensionRange) else length
        return Container(kind, (Other(f"{leaf['of']} ×{count}"),))
    return Tensor(_dimensions(column), dtype, kind="ndarray" if kind == "ndarray" else "Tensor")


def _dimensions(column: Column) -> tuple[Dimension, ...]:
    shapes = column.all_shapes() if column.has_shapes else None
    if shapes is None or not len(shapes):
        return tuple(int(size) for size in column.dataset.shape[1:])
    pairs = zip(shapes.min(axis=0).tolist(), shapes.max(axis=0).tolist(), strict=True)
    return tuple(low if low == high else DimensionRange(low, high) for low, high in pairs)


def _merged(parts: list[CapturedPart]) -> tuple[CapturedPart, ...]:
    """Parts, the one with most values first."""
    return tuple(sorted(parts, key=lambda part: -part.count))
