"""A dataset that grows at its end: a row for each value, of any size.

Rows are as long as the longest; ``_shapes`` beside it says how much of each row is meant, and is
there only once rows differ. Where most of a row would be padding, values are put one after the
other instead (``flat``), and ``_shapes`` says where each of them begins.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from shapetrace.hdf5.encoding import Structure
from shapetrace.hdf5.library import all_of, float_type, library, member_of

LEAF: Final = "shapetrace_column"
"""The attribute that says what a dataset is."""

_ROW_OF_ITS_OWN: Final = 1 << 15
"""Bytes from which a value has a chunk to itself."""
_SMALL_CHUNK: Final = 1 << 12
_LARGE_CHUNK: Final = 1 << 17
_LARGEST_CHUNK: Final = 1 << 28
_LARGEST_FILTERED: Final = 1 << 24
"""Any read of a compressed chunk reads all of it."""
_FLAT_CHUNK: Final = 1 << 16
_DIRECT: Final = 1 << 14
"""Bytes from which a whole chunk bypasses the cache."""

_MOST_CHUNKS: Final = 64
"""A value that is cut into more chunks than that is better stored flat."""
_PADDING_FOR_NOTHING: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Compression:
    """How chunks are compressed."""

    name: Any = None
    options: Any = None
    shuffle: bool = False

    @property
    def is_any(self) -> bool:
        """Whether chunks are filtered at all."""
        return self.name is not None or self.shuffle

    def as_keywords(self) -> dict[str, Any]:
        """The options as h5py's keyword arguments."""
        chosen = {"compression": self.name, "compression_opts": self.options}
        return {**chosen, "shuffle": self.shuffle}


class Column:
    """The array of one leaf of all values of a name."""

    def __init__(self, group: Any, name: str, leaf: Structure) -> None:
        """Open an existing column."""
        self.dataset = member_of(group, name)
        self._group = group
        self._name = name
        self._leaf = leaf
        described = json.loads(self.dataset.attrs[LEAF])
        self.is_flat: bool = described["flat"]
        self._shapes_name: str | None = described["shapes"]
        self._shapes: Any = member_of(group, self._shapes_name) if self._shapes_name else None
        self.rows = (self._shapes if self._shapes is not None else self.dataset).shape[0]
        self._type = float_type(leaf["dtype"])
        self.is_text = h5py_is_text(self.dataset)
        self._chunk: tuple[int, ...] = self.dataset.chunks or self.dataset.shape
        self._is_filtered = self.dataset.id.get_create_plist().get_nfilters() > 0
        self._real = self._allocated = 0
        self._starts: Any = None
        self._headers = [header_of(self.dataset)]
        self._size: int = self.dataset.dtype.itemsize
        self._extent: tuple[int, ...] = self.dataset.shape

    @classmethod
    def create(
        cls,
        group: Any,
        name: str,
        leaf: Structure,
        sample: Any,
        rows: int,
        *,
        flat: bool,
        compression: Compression,
    ) -> Column:
        """Create a column for values like this one, with room for ``rows`` of them."""
        h5py = library()
        dtype: Any = sample.dtype
        if dtype.kind == "O":
            dtype = h5py.string_dtype()
        described = float_type(leaf["dtype"])
        size = 16 if sample.dtype.kind == "O" else dtype.itemsize
        shape: tuple[int, ...]
        chunk: tuple[int, ...]
        if flat:
            shape, chunk = (0,), (max(_FLAT_CHUNK // size, 1),)
        else:
            shape = (0, *sample.shape)
            chunk = _chunk_shape(sample.shape, size, rows, is_filtered=compression.is_any)
        dataset = group.create_dataset(
            name,
            shape=shape,
            maxshape=(None,) * len(shape),
            chunks=chunk,
            dtype=dtype if described is None else h5py.Datatype(described),
            **compression.as_keywords(),
        )
        if leaf["dtype"] != str(dtype.name) and leaf["kind"] == "tensor":
            dataset.attrs["torch_dtype"] = leaf["dtype"]
        shapes = None
        if flat:
            shapes = free_name(group, f"{name}_shapes")
            _make_shapes(group, shapes, sample.ndim)
        dataset.attrs[LEAF] = json.dumps({"flat": flat, "shapes": shapes})
        return cls(group, name, leaf)

    def has_room_for(self, shape: Sequence[int], count: int) -> bool:
        """Return whether so many values of this size would not mostly be padding."""
        if self.is_flat or not shape or self.is_text:
            return True
        item_chunk = self._chunk[1:]
        chunks = [max(-(-size // part), 1) for size, part in zip(shape, item_chunk, strict=True)]
        if math.prod(chunks) > _MOST_CHUNKS and tuple(shape) != self._extent[1:]:
            return False
        size = self._size
        allocated = math.prod(chunks) * math.prod(item_chunk) * size
        real = math.prod(shape) * size
        bound = 2 * (self._real + count * real) + _PADDING_FOR_NOTHING
        return bool(self._allocated + count * allocated <= bound)

    def append(self, arrays: Sequence[Any]) -> None:
        """Add values at the end."""
        for block in _blocks(arrays):
            if self.is_flat:
                self._append_flat(block)
            else:
                self._append_rows(block)
            self.rows += len(block)

    @property
    def file_type(self) -> Any:
        """The dataset's type, in h5py's form."""
        return self.dataset.dtype if self._type is None else library().Datatype(self._type)

    @property
    def has_shapes(self) -> bool:
        """Whether rows differ in size."""
        return self._shapes is not None

    @property
    def stored_bytes(self) -> int:
        """Bytes to read, padding included."""
        return math.prod(self._extent) * self._size

    def headers(self) -> list[int]:
        """Addresses in the file of the datasets' sizes."""
        if self._shapes is not None and len(self._headers) == 1:
            self._headers.append(header_of(self._shapes))
        return self._headers

    def all_shapes(self) -> Any:
        """The size of each row."""
        import numpy

        if self._shapes is not None:
            return all_of(self._shapes)
        return numpy.tile(numpy.array(self.dataset.shape[1:], "i8"), (self.rows, 1))

    def read(self, row: int) -> Any:
        """The array in a row."""
        import numpy

        if self._shapes is None:
            read = self._read((row,), (1, *self.dataset.shape[1:]))[0]
            return numpy.array(read, object if self.is_text else None)
        shape = tuple(int(size) for size in self._shapes[row])
        if not self.is_flat:
            start = (row, *(0 for _ in shape))
            return self._read(start, (1, *shape))[0]
        if self._starts is None or len(self._starts) < self.rows:
            counts = self.all_shapes().prod(axis=1)
            self._starts = numpy.cumsum(counts) - counts
        return self._read((int(self._starts[row]),), (math.prod(shape),)).reshape(shape)

    def _read(self, start: tuple[int, ...], shape: tuple[int, ...]) -> Any:
        import numpy

        if self._type is None:
            padded = (*start, *(0 for _ in shape[len(start) :]))
            there = tuple(slice(a, a + n) for a, n in zip(padded, shape, strict=True))
            return self.dataset[there]
        # The raw bits, which h5py would convert to numbers.
        bits = numpy.empty(shape, f"u{self._type.get_size()}")
        if bits.size:
            h5py = library()
            there = self.dataset.id.get_space()
            there.select_hyperslab((*start, *(0 for _ in shape[len(start) :])), shape)
            self.dataset.id.read(h5py.h5s.create_simple(shape), there, bits, mtype=self._type)
        return bits

    def cut(self, rows: int) -> None:
        """Remove all rows from this one on."""
        if self.is_flat:
            shapes = self._shapes[:rows]
            self.dataset.resize(int(shapes.prod(axis=1).sum()), 0)
        elif self.dataset.shape[0] > rows:
            self.dataset.resize(rows, 0)
        if self._shapes is not None and self._shapes.shape[0] > rows:
            self._shapes.resize(rows, 0)
        self.rows = rows
        self._extent = self.dataset.shape

    def _append_flat(self, block: Any) -> None:
        start = self._extent[0]
        self._grow((start + block.size,))
        self._write((start,), block.reshape(-1))
        self._note_shapes(block)

    def _append_rows(self, block: Any) -> None:
        item = block.shape[1:]
        current = self._extent[1:]
        if self.rows and self._shapes is None and item != current:
            self._begin_shapes(current)
        size = self._size
        self._real += block.size * size
        per_item = [max(-(-a // b), 1) * b for a, b in zip(item, self._chunk[1:], strict=True)]
        self._allocated += len(block) * math.prod(per_item) * size
        extent = item if not self.rows else tuple(map(max, item, current))
        self._grow((self.rows + len(block), *extent))
        self._write((self.rows, *(0 for _ in item)), block)
        if self._shapes is not None:
            self._note_shapes(block)

    def _grow(self, extent: tuple[int, ...]) -> None:
        self.dataset.id.set_extent(extent)
        self._extent = extent

    def _begin_shapes(self, shape: tuple[int, ...]) -> None:
        """Begin ``_shapes``: rows differ in size from now on."""
        name = free_name(self._group, f"{self._name}_shapes")
        self._shapes = _make_shapes(self._group, name, len(shape))
        self._shapes.resize(self.rows, 0)
        if shape:
            self._shapes[:] = shape
        self._shapes_name = name
        self.dataset.attrs[LEAF] = json.dumps({"flat": self.is_flat, "shapes": name})

    def _note_shapes(self, block: Any) -> None:
        import numpy

        shapes = numpy.empty((len(block), block.ndim - 1), "i8")
        shapes[:] = block.shape[1:]
        append_rows(self._shapes, shapes, self.rows)

    def _write(self, start: tuple[int, ...], block: Any) -> None:
        if not block.size:
            return
        if self.is_text:
            there = tuple(slice(a, a + n) for a, n in zip(start, block.shape, strict=True))
            self.dataset[there] = block
            return
        if self._write_chunks(start, block):
            return
        write_block(self.dataset, start, block, self._type)

    def _write_chunks(self, start: tuple[int, ...], block: Any) -> bool:
        """Write whole chunks directly, if these are whole chunks."""
        rows, *item = self._chunk
        is_whole = (
            not self._is_filtered
            and block.shape[1:] == tuple(item)
            and start[0] % rows == 0
            and len(block) % rows == 0
            and block.nbytes // len(block) * rows >= _DIRECT
        )
        if is_whole:
            for first in range(0, len(block), rows):
                place = (start[0] + first, *start[1:])
                self.dataset.id.write_direct_chunk(place, block[first : first + rows])
        return is_whole


def write_block(dataset: Any, start: tuple[int, ...], block: Any, kind: Any = None) -> None:
    """Write an array to a place in a dataset that is large enough; with a type, its bits."""
    spaces = library().h5s
    there = dataset.id.get_space()
    if start:
        there.select_hyperslab(start, block.shape)
    here = spaces.create_simple(block.shape) if start else spaces.create(spaces.SCALAR)
    if kind is None:
        dataset.id.write(here, there, block)
    else:
        dataset.id.write(here, there, block, mtype=kind)


def append_rows(dataset: Any, block: Any, start: int) -> None:
    """Add rows to a dataset of plain numbers."""
    dataset.id.set_extent((start + len(block), *dataset.shape[1:]))
    if block.size:
        write_block(dataset, (start, *(0 for _ in block.shape[1:])), block)


def header_of(dataset: Any) -> int:
    """The address in the file of a dataset's header."""
    place: int = library().h5o.get_info(dataset.id).addr
    return place


def free_name(group: Any, wanted: str) -> str:
    """A free name in a group: ``name``, ``name~2``, ``name~3`` ..."""
    name, number = wanted, 1
    while name in group:
        number += 1
        name = f"{wanted}~{number}"
    return name


def h5py_is_text(dataset: Any) -> bool:
    """Return whether a dataset holds texts."""
    return library().check_string_dtype(dataset.dtype) is not None


def _make_shapes(group: Any, name: str, ndim: int) -> Any:
    rows = max(_SMALL_CHUNK // (8 * max(ndim, 1)), 1)
    return group.create_dataset(
        name, shape=(0, ndim), maxshape=(None, ndim), chunks=(rows, max(ndim, 1)), dtype="i8"
    )


def _chunk_shape(
    shape: Sequence[int], size: int, rows: int, *, is_filtered: bool
) -> tuple[int, ...]:
    """Large values have chunks of their own; small ones share, if possible as they come."""
    item = [max(length, 1) for length in shape]
    item_bytes = math.prod(item) * size
    if item_bytes < _ROW_OF_ITS_OWN:
        wanted = max(rows, _SMALL_CHUNK // item_bytes)
        return (max(min(wanted, _LARGE_CHUNK // item_bytes), 1), *item)
    axis = 0
    while math.prod(item) * size > (_LARGEST_FILTERED if is_filtered else _LARGEST_CHUNK):
        if item[axis] == 1:
            axis += 1
            continue
        item[axis] = -(-item[axis] // 2)
    return (1, *item)


def _blocks(arrays: Sequence[Any]) -> list[Any]:
    """Arrays of one size in a row as one array with a dimension more."""
    import numpy

    blocks: list[Any] = []
    first = 0
    for position in range(1, len(arrays) + 1):
        if position < len(arrays) and arrays[position].shape == arrays[first].shape:
            continue
        run = arrays[first:position]
        first = position
        if len(run) > 1 and run[0].nbytes < _ROW_OF_ITS_OWN:
            blocks.append(numpy.stack(run))
        else:
            blocks += [numpy.asarray(array, order="C")[None] for array in run]
    return blocks
