"""A file whose writes appear together or not at all, however the process that writes it ends.

Writes beyond the end of the last commit go straight to the disk, as nothing refers to them yet.
Writes before that end are kept in memory. A commit records them in ``<file>.journal`` first,
atomically, and then writes them to their places: a few kilobytes for a file that grows.

A process that is killed leaves the file as of its last commit. The exception are the microseconds
in which the journal's content is being put into place. First comes what nothing refers to yet, then
the sizes of the datasets: a file that was left in them opens as well, as a rule, and has some of
the last gather's values and not the others. Should an inner node of an index just have been
divided, it may not. The journal is there in any case, and ``recover`` finishes what was begun.

All this is about the end of the process; nothing waits for the disk itself, so when the whole
machine goes down, the file is as the operating system left it.
"""

from __future__ import annotations

import io
import os
from bisect import bisect_left
from collections.abc import Collection
from typing import Any, Final

from shapetrace._asynchronous import is_asynchronous, suppressing
from shapetrace._exception_table import catching_everywhere
from shapetrace._files import new_beside, write_whole
from shapetrace._pending_exceptions import raise_later
from shapetrace.hdf5.journal import (
    Extents,
    journal_of,
    read_at,
    recover,
    remove,
    write_at,
    written_journal,
)

_PAGE: Final = 4096

_LARGEST_KEPT: Final = 65536
"""After a failure, writes up to this size are kept in memory: HDF5 may read them again."""


class TransactionalFile:
    """The file object that HDF5 reads from and writes to.

    Nothing here raises while HDF5 calls it: HDF5 does not survive a failed write. The
    first failure is kept in ``failure``, whatever is written then goes nowhere, and ``restore``
    takes the file back to its last commit. A forked child that inherits this writes nothing.
    """

    def __init__(self, path: str, identity: bytes, journal: str | None = None) -> None:
        """Open a file whose current content counts as committed, and contains the identity."""
        self.path = path
        # Looked up once: that drops timeouts, which are OSErrors to Python.
        self.journal = journal or journal_of(path)
        self.failure: BaseException | None = None
        self._interrupt: BaseException | None = None
        """The exception of the program's that came while HDF5 was at work."""
        self.is_over = False
        self._raw = io.FileIO(path, "r+")
        self._owner = os.getpid()
        self._committed_end = self._size = self._raw.seek(0, os.SEEK_END)
        self._position = 0
        self._pages: dict[int, bytearray] = {}
        self._changed: dict[int, int] = {}
        """Changes of the committed part that are kept in memory: addresses and lengths."""
        self._identity = (self._find(identity), identity)
        self._journal_end: int | None = None
        """The end of the file after an existing journal is applied."""

    def is_replaced(self) -> bool:
        """Return whether the path now names another file, or none."""
        try:
            there, here = os.stat(self.path), os.fstat(self._raw.fileno())
        except OSError as error:
            if is_asynchronous(error):
                raise
            return True
        return (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino)

    # Methods that HDF5 calls.

    # An exception of the program's may come at any instruction; HDF5 would not survive it, nor
    # numbers from elsewhere. So what was interrupted is done again.

    @catching_everywhere
    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Set the position."""
        try:
            self._position = offset + (0, self._position, self._size)[whence]
            return self._position
        except BaseException as error:
            self._fail(error)
            self._position = offset + (0, self._position, self._size)[whence]
            return self._position

    @catching_everywhere
    def tell(self) -> int:
        """The position."""
        try:
            return self._position
        except BaseException as error:
            self._fail(error)
            return self._position

    @catching_everywhere
    def readinto(self, buffer: Any) -> int:
        """Read bytes that HDF5 has written, from disk or memory."""
        try:
            return self._read(self._position, memoryview(buffer).cast("B"))
        except BaseException as error:
            self._fail(error)
            return self._read_again(memoryview(buffer).cast("B"))

    def read(self, size: int = -1) -> bytes:
        """Read up to `size` bytes; all that are left if it is negative."""
        buffer = bytearray(max(self._size - self._position, 0) if size < 0 else size)
        return bytes(buffer[: self.readinto(buffer)])

    @catching_everywhere
    def write(self, data: Any) -> int:
        """Write to the disk, or to memory for the committed part."""
        try:
            return self._put(memoryview(data).cast("B"))
        except BaseException as error:
            self._fail(error)
            return self._put(memoryview(data).cast("B"))

    @catching_everywhere
    def truncate(self, size: int | None = None) -> int:
        """Set the size; committed bytes stay on the disk until the next commit."""
        try:
            self._size = self._position if size is None else size
            if self.failure is None and self._is_ours():
                self._raw.truncate(max(self._size, self._committed_end))
            return self._size
        except BaseException as error:
            self._fail(error)
            return self._size

    @catching_everywhere
    def flush(self) -> None:
        """Do nothing: ``commit`` writes what is kept in memory."""
        try:
            return
        except BaseException as error:
            self._fail(error)

    # Methods that the saver calls.

    def commit(self, last: Collection[int] = ()) -> None:
        """Make everything that was written since the last commit part of the file.

        The headers that make the rest visible are written last.

        Raises the failure; then the file is as of the last commit, or will be as of this one once
        ``restore`` can finish it.
        """
        if self.failure is not None:
            raise self.failure
        if not self._is_ours():
            return
        try:
            extents = self._extents(last)
            end = max(self._committed_end, self._size)
            if extents:
                self._journal_end = end
                with written_journal(self.journal, self._identity, extents):
                    self._apply(extents)
                    self._committed_end = end
                self._journal_end = None
            self._committed_end = end
            self._pages.clear()
            self._changed.clear()
        except BaseException as error:
            self._fail(error)
            raise

    def restore(self) -> None:
        """Go back to the last commit, after HDF5 has closed the file; raises failures."""
        self._pages.clear()
        self._changed.clear()
        if self._journal_end is not None:
            # An exception may have come before the journal was there, or after it had gone.
            if recover(self.path):
                self._committed_end = self._journal_end
            self._journal_end = None
        self._raw.truncate(self._committed_end)
        self._size = self._committed_end
        self.failure = None

    def retire(self) -> None:
        """Ignore writes from now on: HDF5 objects that an exception keeps alive may still write."""
        self.is_over = True

    def taken_interrupt(self) -> BaseException | None:
        """Take the program's exception that came in here, to be raised outside of HDF5."""
        came, self._interrupt = self._interrupt, None
        return came

    def close(self) -> None:
        """Close the file; bytes that were not committed are cut off."""
        try:
            if self._is_ours() and self._journal_end is None:
                self._raw.truncate(self._committed_end)
        finally:
            self._raw.close()

    @catching_everywhere
    def __del__(self) -> None:
        try:
            # Not closed, as in a forked child: a warning would not help.
            raw = getattr(self, "_raw", None)
            if raw is not None:
                raw.close()
        except BaseException as error:
            if not is_asynchronous(error):
                raise
            later = raise_later(error)
            del later

    def _is_ours(self) -> bool:
        return os.getpid() == self._owner and not self.is_over

    def _fail(self, error: BaseException) -> None:
        if self._interrupt is None and is_asynchronous(error):
            self._interrupt = error
        if self.failure is None:
            self.failure = error

    def _find(self, identity: bytes) -> int:
        self._raw.seek(0)
        place = (self._raw.read(1 << 20) or b"").find(identity)
        if place < 0:
            raise ValueError("the file has no identity")
        return place

    def _read_again(self, view: memoryview) -> int:
        # Unreadable bytes become zeros, which HDF5 recognizes as invalid.
        view[:] = bytes(len(view))
        with suppressing(OSError):
            self._read(self._position, view)
        return len(view)

    def _put(self, view: memoryview) -> int:
        """Write at the position; after a failure only to memory, which cannot fail."""
        size = len(view)
        end = self._position + size
        self._write(self._position, view)
        self._size = max(self._size, end)
        self._position = end  # last, so that all of it can be done twice
        return size

    def _write(self, offset: int, view: memoryview) -> None:
        if self.failure is not None or not self._is_ours():
            if len(view) <= _LARGEST_KEPT:
                self._keep(offset, view)
            return
        within = min(max(self._committed_end - offset, 0), len(view))
        if within:
            self._keep(offset, view[:within])
            self._changed[offset] = max(within, self._changed.get(offset, 0))
        if within < len(view):
            write_at(self._raw, offset + within, view[within:])

    def _keep(self, offset: int, view: memoryview) -> None:
        position = 0
        while position < len(view):
            number, start = divmod(offset + position, _PAGE)
            page = self._pages.get(number)
            if page is None:
                page = bytearray(_PAGE)
                read_at(self._raw, number * _PAGE, memoryview(page))
                self._pages[number] = page
            taken = min(_PAGE - start, len(view) - position)
            page[start : start + taken] = view[position : position + taken]
            position += taken

    def _read(self, offset: int, view: memoryview) -> int:
        count = max(min(len(view), self._size - offset), 0)
        read_at(self._raw, offset, view[:count])
        if not self._pages:
            return count
        is_usual = self.failure is None and self._is_ours()
        end = min(offset + count, self._committed_end) if is_usual else offset + count
        for number in range(offset // _PAGE, -(-end // _PAGE)):
            page = self._pages.get(number)
            first = max(number * _PAGE, offset)
            last = min((number + 1) * _PAGE, end)
            if page is not None and first < last:
                view[first - offset : last - offset] = page[first % _PAGE : last - number * _PAGE]
        return count

    def _extents(self, last: Collection[int]) -> Extents:
        """The extents kept in memory, in the order of writing.

        The superblock is first, as an end of file that is too large does no harm.
        """
        ranges: list[tuple[int, int]] = []
        for start in sorted(self._changed):
            end = start + self._changed[start]
            if ranges and start < ranges[-1][1]:
                ranges[-1] = (ranges[-1][0], max(end, ranges[-1][1]))
            else:
                ranges.append((start, end))
        places = sorted(last)

        def is_last(each: tuple[int, int]) -> bool:
            return bisect_left(places, each[0]) < bisect_left(places, each[1])

        return [(start, self._kept(start, end)) for start, end in sorted(ranges, key=is_last)]

    def _kept(self, start: int, end: int) -> bytes:
        content = bytearray()
        while start < end:
            number, first = divmod(start, _PAGE)
            content += self._pages[number][first : first + end - start]
            start = (number + 1) * _PAGE
        return bytes(content)

    def _apply(self, extents: Extents) -> None:
        for offset, content in extents:
            write_at(self._raw, offset, memoryview(content))


def create(path: str, content: bytes, *, overwrite: bool) -> None:
    """Make a file with this content at once; raises FileExistsError where it must not replace one.

    The journal of a file that is replaced goes with it.
    """
    if overwrite:
        remove(journal_of(path))
        write_whole(path, [content])
        return
    with new_beside(os.path.abspath(path)) as (stream, temporary):
        stream.write(content)
        stream.close()
        _put_new(temporary, path)


def _put_new(temporary: str, path: str) -> None:
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError as error:
        if is_asynchronous(error):
            raise
        # A filesystem without links: the place is taken by an empty file, which is ours to replace.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        os.replace(temporary, path)
