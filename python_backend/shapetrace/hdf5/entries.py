"""How the values of one name are laid out in a file.

    forward.x               the values, one row each; what every reader of HDF5 sees
    forward.x_iterations    in which iteration each was captured
    forward.x_ranks         and by which rank
    forward.x_shapes        how much of each row is meant, once values differ in size
    forward.x_order         which value each row is, once there is a second part

A tuple, list, dict or other node is a group instead, with a dataset for each leaf. Values of
another type, number of dimensions or structure than the first are in a *part* of their own,
``forward.x~2``, with iterations, ranks and order beside it; so are values that would mostly be
padding. A value that stands for several iterations, as stacked ones do, has a row of them in
``_iterations`` and in ``_ranks``, filled up at its end (with -1, or the largest of an unsigned
type).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from shapetrace.hdf5.columns import Column, Compression, free_name
from shapetrace.hdf5.decoding import decoded
from shapetrace.hdf5.encoding import Encoded, Structure, UnstorableError
from shapetrace.hdf5.library import member_of
from shapetrace.hdf5.row_indices import IndexColumn

PART: Final = "shapetrace"
"""The attribute that marks a dataset or a group as a part, and describes it."""

_MOST_PARTS: Final = 32


@dataclass(frozen=True, slots=True)
class Layout:
    """How new datasets are made."""

    compression: Compression = field(default_factory=Compression)
    iteration_dtype: Any = "i8"


@dataclass(frozen=True, slots=True)
class Row:
    """One value with its iterations and ranks."""

    value: Encoded
    iterations: tuple[int, ...]
    ranks: tuple[int, ...]


class Part:
    """Values of one name and one structure."""

    def __init__(self, file: Any, key: str) -> None:
        """Open a part of a file."""
        self.key = key
        self.object = member_of(file, key)
        self._file = file
        described = json.loads(self.object.attrs[PART])
        self.name: str = described["name"]
        self.structure: str = described["structure"]
        self.is_flat: bool = described["flat"]
        self.beside = {
            what: IndexColumn(file, beside) for what, beside in described["beside"].items()
        }
        """Iterations, ranks and, where there is one, order."""
        self.tree: Structure = json.loads(self.structure)
        self.columns = [
            Column(group, member, leaf) for group, member, leaf in members_of(file, key, self.tree)
        ]
        self.rows = self.beside["iterations"].rows

    @classmethod
    def create(
        cls, file: Any, name: str, value: Encoded, rows: int, *, flat: bool, layout: Layout
    ) -> Part:
        """Create a part for values like this one, with room for ``rows`` of them."""
        tree: Structure = json.loads(value.structure)
        key = free_name(file, escaped(name))
        samples = iter(value.leaves)
        for group, member, leaf in members_of(file, key, tree, make=True):
            Column.create(
                group,
                member,
                leaf,
                sample := next(samples),
                rows,
                flat=flat and sample.ndim > 0,
                compression=layout.compression,
            )
        beside = {}
        for what, dtype in (("iterations", layout.iteration_dtype), ("ranks", "i4")):
            beside[what] = free_name(file, f"{key}_{what}")
            IndexColumn.create(file, beside[what], dtype)
        described = {"name": name, "structure": value.structure, "flat": flat, "beside": beside}
        file[key].attrs[PART] = json.dumps(described)
        return cls(file, key)

    def has_room_for(self, value: Encoded, count: int) -> bool:
        """Return whether so many values like this one can be added without a lot of padding."""
        pairs = zip(self.columns, value.leaves, strict=True)
        return all(column.has_room_for(array.shape, count) for column, array in pairs)

    def append(self, rows: Sequence[Row], position: int) -> None:
        """Add values at the end; ``position`` is that of the first among all values of the name."""
        for column, arrays in zip(
            self.columns, zip(*(row.value.leaves for row in rows), strict=True), strict=True
        ):
            column.append(arrays)
        self.beside["iterations"].append([row.iterations for row in rows])
        self.beside["ranks"].append([row.ranks for row in rows])
        if "order" in self.beside:
            order = range(position, position + len(rows))
            self.beside["order"].append([(number,) for number in order])
        self.rows += len(rows)

    def begin_order(self) -> None:
        """Begin ``_order``, the position of each row's value, also for existing rows."""
        if "order" in self.beside:
            return
        order = IndexColumn.create(self._file, free_name(self._file, f"{self.key}_order"), "i8")
        if self.rows:
            order.append([(number,) for number in range(self.rows)])
        self.beside["order"] = order
        described = json.loads(self.object.attrs[PART])
        names = {what: beside.name for what, beside in self.beside.items()}
        self.object.attrs[PART] = json.dumps({**described, "beside": names})

    def cut(self, rows: int) -> None:
        """Remove all rows from this one on, also partly added ones."""
        for column in self.columns:
            column.cut(rows)
        for beside in self.beside.values():
            beside.cut(rows)
        self.rows = rows

    def value(self, row: int) -> Any:
        """The value in a row, as it was captured."""
        return decoded(self.tree, iter([column.read(row) for column in self.columns]))

    def positions(self) -> list[int]:
        """The position of each row's value among those of the name."""
        order = self.beside.get("order")
        return list(range(self.rows)) if order is None else [int(each) for each in order.all()]


class Entry:
    """All values of one name."""

    def __init__(self, file: Any, name: str, layout: Layout, parts: Sequence[Part] = ()) -> None:
        """Open the existing parts."""
        self.parts = list(parts)
        self._file = file
        self._name = name
        self._layout = layout
        self._count = sum(part.rows for part in parts)

    def append(self, rows: Sequence[Row]) -> None:
        """Add all of these values; after a failure none of them."""
        before = [(part, part.rows) for part in self.parts]
        count = self._count
        try:
            for run in _runs(rows):
                part = self._part_for(run)
                part.append(run, self._count)
                self._count += len(run)
        except BaseException:
            self._count = count
            known = dict(before)
            for part in self.parts:
                part.cut(known.get(part, 0))
            raise

    def headers(self) -> Iterator[int]:
        """Addresses in the file of the sizes of all datasets."""
        for part in self.parts:
            for column in part.columns:
                yield from column.headers()
            for beside in part.beside.values():
                yield beside.header

    def _part_for(self, run: Sequence[Row]) -> Part:
        value = run[0].value
        alike = [part for part in self.parts if part.structure == value.structure]
        # One that holds things one after the other has room for all.
        for part in sorted(alike, key=lambda part: part.is_flat):
            if part.has_room_for(value, len(run)):
                return part
        if len(self.parts) >= _MOST_PARTS:
            raise UnstorableError(f"it has been of {_MOST_PARTS} different structures already")
        part = Part.create(
            self._file, self._name, value, len(run), flat=bool(alike), layout=self._layout
        )
        self.parts.append(part)
        if len(self.parts) > 1:
            for each in self.parts:
                each.begin_order()
        return part


def entries_of(file: Any, layout: Layout) -> dict[str, Entry]:
    """The names in a file."""
    parts: dict[str, list[Part]] = {}
    for key in file:
        if PART in member_of(file, key).attrs:
            part = Part(file, key)
            parts.setdefault(part.name, []).append(part)
    return {name: Entry(file, name, layout, those) for name, those in parts.items()}


def escaped(name: str) -> str:
    """A captured name escaped for HDF5, in which ``/`` would begin a group."""
    text = "".join(
        f"%{ord(character):02X}"
        if character in "/\0" or 0xD800 <= ord(character) < 0xE000
        else character
        for character in name
    )
    return text if text.strip(".") else text.replace(".", "%2E") or "%"


def members_of(
    file: Any, key: str, tree: Structure, *, make: bool = False
) -> Iterator[tuple[Any, str, Structure]]:
    """Each leaf with the group that it is in and its name there."""
    if "items" not in tree:
        yield file, key, tree
        return
    group = file.create_group(key) if make else member_of(file, key)
    # Keys with equal texts are told apart by their order.
    taken: set[str] = set()
    for position, item in enumerate(tree["items"]):
        member = escaped(_key_text(tree, position))
        while member in taken or _is_beside(member, taken):
            member += "~"
        taken.add(member)
        yield from members_of(group, member, item, make=make)


def _is_beside(member: str, taken: set[str]) -> bool:
    return member.endswith("_shapes") and member.removesuffix("_shapes") in taken


def _key_text(tree: Structure, position: int) -> str:
    keys = tree.get("keys")
    if keys is None:
        return str(position)
    key = keys[position]
    return key if isinstance(key, str) else str(key[1])


def _runs(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Rows next to each other that go to one place: of one structure and of the same sizes."""
    run: list[Row] = []
    alike: object = None
    for row in rows:
        kind = (row.value.structure, *(array.shape for array in row.value.leaves))
        if run and kind != alike:
            yield run
            run = []
        alike = kind
        run.append(row)
    if run:
        yield run
