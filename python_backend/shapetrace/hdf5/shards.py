"""Files of single ranks, and the file that joins them.

Each rank writes ``run.rank0.h5``, ``run.rank1.h5``, ... without asking another. ``run.h5`` has
their datasets one below the other, rank by rank, as virtual datasets: it refers to the files beside
it and holds none of their numbers, only iterations, ranks and shapes, and texts, of which HDF5 has
no virtual form. It is made when a rank closes its file, and can be made anew at any time.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from shapetrace._asynchronous import is_asynchronous
from shapetrace._errors import CaptureFileError
from shapetrace._files import replacing
from shapetrace.hdf5.columns import LEAF, Column, free_name
from shapetrace.hdf5.entries import (
    PART,
    Entry,
    Layout,
    Part,
    entries_of,
    escaped,
    members_of,
)
from shapetrace.hdf5.journal import recover
from shapetrace.hdf5.library import FORMAT, VERSION, library, opened_for_reading
from shapetrace.hdf5.row_indices import IndexColumn, fill_value

MISSING = "shapetrace_missing_ranks"
"""The attribute that lists ranks without a file."""


@dataclass(frozen=True, slots=True)
class Joined:
    """The result of joining shards."""

    path: str
    ranks: tuple[int, ...]
    missing: tuple[int, ...]
    """Ranks without a file: they died before their first gather, or wrote on another machine."""
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shards:
    """Shards of one run, opened for reading."""

    files: dict[int, Any]
    """By rank."""
    world_size: int
    missing: tuple[int, ...]
    problems: tuple[str, ...]


def shard_path(path: str, rank: int) -> str:
    """``run.rank3.h5`` for ``run.h5``."""
    stem, extension = os.path.splitext(path)
    return f"{stem}.rank{rank}{extension}"


def shards_of(path: str) -> dict[int, str]:
    """The existing files of single ranks, by rank."""
    folder, name = os.path.split(os.path.abspath(path))
    stem, extension = os.path.splitext(name)
    pattern = re.compile(rf"{re.escape(stem)}\.rank(\d+){re.escape(extension)}")
    try:
        names = os.listdir(folder)
    except OSError as error:
        if is_asynchronous(error):
            raise
        return {}
    found = {int(match[1]): name for name in names if (match := pattern.fullmatch(name))}
    return {rank: os.path.join(folder, found[rank]) for rank in sorted(found)}


def join_shards(path: str | os.PathLike[str]) -> Joined:
    """Make the file that joins all shards, which are neither copied nor changed.

    A file of that name is replaced if it was made by this. Shards that cannot be read are left out
    and reported.
    """
    target = os.path.abspath(os.fspath(path))
    shards = shards_of(target)
    if not shards:
        raise CaptureFileError(
            f"there is nothing to join: no {os.path.basename(shard_path(target, 0))} and no other"
            f" rank's file beside {os.path.basename(target)}"
        )
    if os.path.exists(target) and not _is_joined(target):
        raise CaptureFileError(
            f"{os.path.basename(target)} exists already and was not made of shards; move it first"
        )
    for shard in shards.values():
        recover(shard)
    with ExitStack() as stack:
        opened = opened_shards(target, stack)
        missing = opened.missing
        with replacing(target) as (stream, temporary):
            stream.close()
            with library().File(temporary, "w", libver=("earliest", "v110")) as file:
                file.attrs[FORMAT] = VERSION
                file.attrs["world_size"] = opened.world_size
                file.attrs[MISSING] = list(missing)
                _join(file, opened.files)
    return Joined(target, tuple(opened.files), missing, opened.problems)


def opened_shards(path: str, stack: ExitStack) -> Shards:
    """Open the files of single ranks that belong together, until the stack is left."""
    problems: list[str] = []
    files: dict[int, Any] = {}
    shards = shards_of(path)
    for rank, shard in shards.items():
        try:
            files[rank] = stack.enter_context(opened_for_reading(shard))
        except CaptureFileError as error:
            problems.append(str(error))
    world_size = _world_size(files)
    for rank in list(files):
        if files[rank].attrs.get("world_size", 1) != world_size:
            del files[rank]
            problems.append(f"{os.path.basename(shards[rank])} is of another run: left out")
    missing = tuple(rank for rank in range(world_size) if rank not in files)
    return Shards(files, world_size, missing, tuple(problems))


def _world_size(files: dict[int, Any]) -> int:
    """The number of ranks of the last run."""
    if not files:
        return 0
    newest = max(files.values(), key=lambda file: os.stat(file.filename).st_mtime)
    return int(newest.attrs.get("world_size", 1))


def _is_joined(path: str) -> bool:
    try:
        with opened_for_reading(path) as file:
            return MISSING in file.attrs
    except CaptureFileError:
        return False


def _join(target: Any, files: dict[int, Any]) -> None:
    parts: dict[tuple[str, str, bool], list[Part]] = {}
    count: dict[str, int] = {}
    positions: dict[int, list[int]] = {}
    for file in files.values():
        for name, entry in entries_of(file, Layout()).items():
            _note_positions(entry, count.get(name, 0), positions)
            count[name] = count.get(name, 0) + sum(part.rows for part in entry.parts)
            for part in entry.parts:
                parts.setdefault((name, part.structure, part.is_flat), []).append(part)
    several = {name for name in count if sum(key[0] == name for key in parts) > 1}
    for (name, structure, is_flat), those in sorted(parts.items(), key=lambda item: item[0]):
        _join_parts(target, name, structure, is_flat, those, positions if name in several else None)


def _note_positions(entry: Entry, before: int, positions: dict[int, list[int]]) -> None:
    for part in entry.parts:
        positions[id(part)] = [before + position for position in part.positions()]


def _join_parts(
    target: Any,
    name: str,
    structure: str,
    is_flat: bool,
    parts: list[Part],
    positions: dict[int, list[int]] | None,
) -> None:
    import numpy

    key = free_name(target, escaped(name))
    for index, (group, member, _) in enumerate(members_of(target, key, parts[0].tree, make=True)):
        _join_columns(group, member, [part.columns[index] for part in parts])
    beside = {}
    for what in ("iterations", "ranks"):
        beside[what] = free_name(target, f"{key}_{what}")
        stacked = _stacked([part.beside[what] for part in parts])
        nothing = fill_value(stacked.dtype)
        target.create_dataset(beside[what], data=stacked, fillvalue=nothing)
    if positions is not None:
        beside["order"] = free_name(target, f"{key}_order")
        order = [position for part in parts for position in positions[id(part)]]
        target[beside["order"]] = numpy.array(order, "i8")
    described = {"name": name, "structure": structure, "flat": is_flat, "beside": beside}
    target[key].attrs[PART] = json.dumps(described)


def _join_columns(group: Any, name: str, columns: list[Column]) -> None:
    import numpy

    h5py = library()
    first = columns[0]
    flat = first.is_flat
    sizes = [column.dataset.shape for column in columns]
    item = tuple(max(lengths) for lengths in zip(*(size[1:] for size in sizes), strict=True))
    total = sum(size[0] for size in sizes)
    if first.is_text:
        texts = numpy.full((total, *item), "", object)
        for start, column in _places(columns):
            inside = tuple(slice(0, length) for length in column.dataset.shape[1:])
            read = column.dataset.asstr()[:]
            texts[(slice(start, start + len(read)), *inside)] = read
        dataset = group.create_dataset(name, data=texts, dtype=h5py.string_dtype())
    elif not any(map(math.prod, sizes)):
        dataset = group.create_dataset(name, shape=(total, *item), dtype=first.file_type)
    else:
        layout = h5py.VirtualLayout((total, *item), first.file_type)
        for start, column in _places(columns):
            shape = column.dataset.shape
            if math.prod(shape):
                inside = tuple(slice(0, length) for length in shape[1:])
                layout[(slice(start, start + shape[0]), *inside)] = _source(h5py, column.dataset)
        dataset = group.create_virtual_dataset(name, layout)
    for attribute, value in first.dataset.attrs.items():
        if attribute != LEAF and attribute != PART:
            dataset.attrs[attribute] = value
    shapes = None
    if (
        flat
        or any(size[1:] != item for size in sizes)
        or any(column.has_shapes for column in columns)
    ):
        shapes = free_name(group, f"{name}_shapes")
        rows = numpy.concatenate([column.all_shapes() for column in columns])
        group[shapes] = rows
    dataset.attrs[LEAF] = json.dumps({"flat": flat, "shapes": shapes})


def _places(columns: list[Column]) -> Iterator[tuple[int, Column]]:
    """Each column with the row that it begins at."""
    start = 0
    for column in columns:
        yield start, column
        start += column.dataset.shape[0]


def _source(h5py: Any, dataset: Any) -> Any:
    """A whole dataset of a file beside this one; HDF5 has its own use for ``%``."""
    file, name = (text.replace("%", "%%") for text in (dataset.file.filename, dataset.name))
    return h5py.VirtualSource(os.path.basename(file), name, dataset.shape)


def _stacked(numbers: list[IndexColumn]) -> Any:
    """Iterations or ranks of all shards, of which some may have several in a row."""
    import numpy

    blocks = [each.all() for each in numbers]
    if not any(each.is_wide for each in numbers):
        return numpy.concatenate(blocks)
    width = max(block.shape[1] if block.ndim == 2 else 1 for block in blocks)
    wide = []
    for block in blocks:
        rows = numpy.full((len(block), width), fill_value(block.dtype), block.dtype)
        rows[:, : block.shape[1] if block.ndim == 2 else 1] = block.reshape(len(block), -1)
        wide.append(rows)
    return numpy.concatenate(wide)
