"""Values of a file as they were when they were captured."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from shapetrace._errors import CaptureFileError
from shapetrace.capture.hdf5.entries import Entry, Layout, Part, entries_of
from shapetrace.capture.hdf5.journal import recover
from shapetrace.capture.hdf5.library import FORMAT, opened_for_reading
from shapetrace.capture.hdf5.shards import join_shards, shards_of


@dataclass(frozen=True, slots=True)
class SavedValue:
    """One value of a name."""

    value: Any
    """Tensors are tensors again, on the CPU."""
    iterations: tuple[int, ...]
    """When it was captured; several for values that were stacked."""
    ranks: tuple[int, ...]


def read_names(path: str | os.PathLike[str]) -> list[str]:
    """The names that a file has values of."""
    with opened(path) as file:
        return sorted(entries_of(file, Layout()))


def read_values(path: str | os.PathLike[str], name: str) -> list[SavedValue]:
    """All values of a name, in the order in which they were saved."""
    with opened(path) as file:
        entry = entries_of(file, Layout()).get(name)
        if entry is None:
            raise CaptureFileError(f"{os.path.basename(path)} has no values of {name!r}")
        return [
            SavedValue(
                part.value(row), part.beside["iterations"].row(row), part.beside["ranks"].row(row)
            )
            for part, row in in_order(entry)
        ]


def in_order(entry: Entry) -> Iterator[tuple[Part, int]]:
    """The rows of a name as they were saved, whichever part they are in."""
    places = [
        (position, part, row)
        for part in entry.parts
        for row, position in enumerate(part.positions())
    ]
    places.sort(key=lambda place: place[0])
    for _, part, row in places:
        yield part, row


def opened(path: str | os.PathLike[str]) -> Any:
    """A file of captured values, mended if the program that wrote it was killed while it did.

    Files of single ranks are joined first, where that has not been done since they were written.
    """
    given = os.fspath(path)
    shards = shards_of(given)
    for each in (given, *shards.values()):
        with suppress(PermissionError):
            recover(each)
    if shards and _is_older(given, shards.values()):
        with suppress(CaptureFileError, OSError):
            join_shards(given)
    file = opened_for_reading(given)
    if FORMAT not in file.attrs:
        file.close()
        raise CaptureFileError(
            f"{os.path.basename(given)} is an HDF5 file, but not one of captured values; h5py can"
            " read it"
        )
    return file


def _is_older(path: str, than: Iterable[str]) -> bool:
    try:
        return os.stat(path).st_mtime < max(os.stat(each).st_mtime for each in than)
    except OSError:
        return True
