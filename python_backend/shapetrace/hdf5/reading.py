"""Reads captured values from a file. Nothing is written here.

Of files of single ranks that belong together, the files themselves are read: the one that shows
them as one may be older than they are. A file that is not what ``saver`` writes is refused by an
error of ours, whatever HDF5 or NumPy say of it. libhdf5 itself crashes on some: see
``reader_process``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

from shapetrace._asynchronous import is_asynchronous
from shapetrace._errors import CaptureFileError, ShapetraceError
from shapetrace.hdf5.entries import Layout, Part, entries_of
from shapetrace.hdf5.library import FORMAT, opened_for_reading
from shapetrace.hdf5.shards import MISSING, opened_shards, shards_of
from shapetrace.hdf5.storage import PROBLEMS


@dataclass(frozen=True, slots=True)
class PlacedPart:
    """A part, and how many values of its name are in the files of lower ranks."""

    part: Part
    before: int


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a file, or of the files of single ranks."""

    names: Mapping[str, tuple[PlacedPart, ...]]
    size: int
    """Bytes on the disk."""
    missing: tuple[int, ...]
    """Ranks that took part but have no file."""
    problems: tuple[str, ...]
    """Problems of saving and reading."""


@dataclass(frozen=True, slots=True)
class SavedValue:
    """One value of a name."""

    value: Any
    """Tensors are tensors again, on the CPU."""
    iterations: tuple[int, ...]
    """When it was captured; several for values that were stacked."""
    ranks: tuple[int, ...]


def read_names(path: str | os.PathLike[str]) -> list[str]:
    """The names of a file's values."""
    with opened(path) as contents:
        return sorted(contents.names)


def read_values(path: str | os.PathLike[str], name: str) -> list[SavedValue]:
    """All values of a name, in the order in which they were saved, rank by rank."""
    with opened(path) as contents:
        if name not in contents.names:
            raise CaptureFileError(f"{os.path.basename(path)} has no values of {name!r}")
        return [
            SavedValue(
                part.value(row), part.beside["iterations"].row(row), part.beside["ranks"].row(row)
            )
            for part, row in in_order(contents.names[name])
        ]


def in_order(parts: tuple[PlacedPart, ...]) -> Iterator[tuple[Part, int]]:
    """The rows of a name in the order of saving, from all parts."""
    places = [
        (each.before + position, each.part, row)
        for each in parts
        for row, position in enumerate(each.part.positions())
    ]
    places.sort(key=lambda place: place[0])
    for _, part, row in places:
        yield part, row


@contextmanager
def opened(path: str | os.PathLike[str], content: BinaryIO | None = None) -> Iterator[Contents]:
    """What is in a file of captured values, or in this content of one, to be read meanwhile."""
    given = os.fspath(path)
    shown = os.path.basename(given)
    try:
        with ExitStack() as stack:
            yield _contents(given, content, stack)
    except ShapetraceError:
        raise
    except MemoryError:
        raise CaptureFileError(f"cannot read {shown}: it takes more memory than there is") from None
    except Exception as error:
        if is_asynchronous(error):
            raise
        raise CaptureFileError(f"cannot read {shown}: it is damaged ({_reason(error)})") from None


def _contents(given: str, content: BinaryIO | None, stack: ExitStack) -> Contents:
    shards = {} if content is not None else shards_of(given)
    if shards and not os.path.lexists(given):
        return _contents_of_shards(given, stack)
    file = stack.enter_context(opened_for_reading(given, content))
    if FORMAT not in file.attrs:
        raise CaptureFileError(
            f"{os.path.basename(given)} is an HDF5 file, but not one of captured values; h5py can"
            " read it"
        )
    if MISSING in file.attrs:
        if shards:
            return _contents_of_shards(given, stack)
        raise CaptureFileError(
            f"{os.path.basename(given)} shows files of single ranks, which are not beside it"
        )
    size = os.stat(given).st_size if content is None else content.seek(0, os.SEEK_END)
    return Contents(_placed([file]), size, (), tuple(_problems_in(file)))


def _contents_of_shards(given: str, stack: ExitStack) -> Contents:
    shards = opened_shards(given, stack)
    problems = list(shards.problems)
    for file in shards.files.values():
        problems += _problems_in(file)
    files = filter(os.path.exists, (given, *shards_of(given).values()))
    size = sum(os.stat(each).st_size for each in files)
    return Contents(_placed(list(shards.files.values())), size, shards.missing, tuple(problems))


def _placed(files: list[Any]) -> dict[str, tuple[PlacedPart, ...]]:
    names: dict[str, tuple[PlacedPart, ...]] = {}
    count: dict[str, int] = {}
    for file in files:
        for name, entry in entries_of(file, Layout()).items():
            before = count.get(name, 0)
            names[name] = (
                *names.get(name, ()),
                *(PlacedPart(part, before) for part in entry.parts),
            )
            count[name] = before + sum(part.rows for part in entry.parts)
    return names


def _problems_in(file: Any) -> Iterator[str]:
    yield from filter(None, str(file.attrs.get(PROBLEMS, "")).splitlines())


def _reason(error: Exception) -> str:
    """The message of HDF5 or NumPy, on one line of limited length."""
    text = " ".join(str(error).strip("\"'").split())
    text = "".join(each if each.isprintable() else "?" for each in text)
    return text[:_LONGEST_REASON] or type(error).__name__


_LONGEST_REASON = 120
