"""Integers for the rows of a dataset: iterations, ranks, order; one or several a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shapetrace.hdf5.columns import header_of, write_block
from shapetrace.hdf5.library import all_of, member_of


class IndexColumn:
    """A dataset of integers that grows along with another."""

    dataset: Any
    dtype: Any
    header: int
    """The address of its size in the file."""
    rows: int
    _width: int | None
    """Numbers that a row has room for; None for a dataset of single numbers."""

    def __init__(self, file: Any, name: str) -> None:
        """Open an existing column."""
        self.name = name
        self._file = file
        self._take(member_of(file, name))

    @classmethod
    def create(cls, file: Any, name: str, dtype: Any) -> IndexColumn:
        """Create a column with a number for each row."""
        _make(file, name, dtype, 1)
        return cls(file, name)

    @property
    def is_wide(self) -> bool:
        """Whether rows may have several numbers."""
        return self._width is not None

    def append(self, numbers: Sequence[tuple[int, ...]]) -> None:
        """Add rows at the end."""
        import numpy

        width = max(map(len, numbers))
        if self._width is None and width != 1:
            self._widen()
        end = self.rows + len(numbers)
        if self._width is None:
            block = numpy.array([number for (number,) in numbers], self.dtype)
            self.dataset.id.set_extent((end,))
            write_block(self.dataset, (self.rows,), block)
        else:
            self._width = max(width, self._width)
            block = numpy.full((len(numbers), self._width), fill_value(self.dtype), self.dtype)
            for row, those in zip(block, numbers, strict=True):
                row[: len(those)] = those
            self.dataset.id.set_extent((end, self._width))
            if block.size:
                write_block(self.dataset, (self.rows, 0), block)
        self.rows = end

    def cut(self, rows: int) -> None:
        """Remove all rows from this one on."""
        if self.dataset.shape[0] > rows:
            self.dataset.resize(rows, 0)
        self.rows = rows

    def row(self, row: int) -> tuple[int, ...]:
        """The numbers of a row."""
        if self._width is None:
            return (int(self.dataset[row]),)
        nothing = fill_value(self.dtype)
        return tuple(int(number) for number in self.dataset[row] if number != nothing)

    def all(self) -> Any:
        """The numbers of all rows as an array."""
        return all_of(self.dataset)

    def different(self) -> Any:
        """The distinct numbers."""
        import numpy

        numbers = numpy.unique(self.all())
        return numbers if self._width is None else numbers[numbers != fill_value(self.dtype)]

    def _take(self, dataset: Any) -> None:
        self.dataset = dataset
        self.header = header_of(dataset)
        self.dtype = dataset.dtype
        shape = dataset.shape
        self.rows = shape[0]
        self._width = shape[1] if len(shape) == 2 else None

    def _widen(self) -> None:
        """Move the numbers to a dataset with several columns."""
        numbers = self.dataset[:]
        del self._file[self.name]
        wide = _make(self._file, self.name, self.dtype, 2)
        wide.resize((len(numbers), 1))
        if len(numbers):
            wide[:, 0] = numbers
        self._take(wide)


def fill_value(dtype: Any) -> int:
    """The filler for rows with fewer numbers."""
    import numpy

    return -1 if dtype.kind == "i" else int(numpy.iinfo(dtype).max)


def _make(file: Any, name: str, dtype: Any, ndim: int) -> Any:
    import numpy

    kind = numpy.dtype(dtype)
    return file.create_dataset(
        name,
        shape=(0,) * ndim,
        maxshape=(None,) * ndim,
        chunks=(256,) if ndim == 1 else (64, 16),
        dtype=kind,
        fillvalue=fill_value(kind),
    )
