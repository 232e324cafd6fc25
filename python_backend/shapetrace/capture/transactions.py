"""A file whose writes appear together or not at all, however the process that writes it ends.

What is written beyond the end of the last commit goes straight to the disk: nothing refers to it
yet. What is written before that end is kept in memory. A commit writes it to ``<file>.journal``
first, all of it or nothing, and then to its place, which is a few kilobytes for a file that grows.

A process that is killed leaves the file as of its last commit. The exception are the microseconds
in which the journal's content is being put into place: a file that was left in them may not open,
but its journal is there, and ``recover`` finishes what was begun. All this is about the end of the
process; nothing waits for the disk itself, so when the whole machine goes down, the file is as the
operating system left it.
"""

from __future__ import annotations

import contextlib
import io
import os
import struct
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Final

_lock_file: Callable[[int, int], None] | None
try:
    import fcntl

    _lock_file = fcntl.flock
    _LOCK_AT_ONCE = fcntl.LOCK_EX | fcntl.LOCK_NB
except ImportError:  # Windows
    _lock_file = None
    _LOCK_AT_ONCE = 0

_MAGIC: Final = b"shapetrace journal 1\n"
_HEADER: Final = struct.Struct("<QII")
_EXTENT: Final = struct.Struct("<QQ")
_CHECKSUM: Final = struct.Struct("<I")
_PAGE: Final = 4096

_LARGEST_KEPT: Final = 65536
"""After a failure, writes up to this size are kept in memory: HDF5 may read them again."""

_MOST_SECONDS: Final = 5.0
"""How long a living process is waited for that is just committing."""

_ABANDONED_SECONDS: Final = 60.0
"""A journal that was not finished in this time belongs to nobody any more."""


def journal_of(path: str) -> str:
    """Where a file's journal is, as long as there is one."""
    return f"{path}.journal"


class TransactionalFile:
    """What HDF5 reads from and writes to, in place of a file.

    Nothing in here raises while HDF5 calls it: HDF5 does not survive a write that failed. The
    first failure is kept in ``failure``, whatever is written then goes nowhere, and ``restore``
    takes the file back to its last commit. A forked child that inherits this writes nothing.
    """

    def __init__(self, path: str, identity: bytes) -> None:
        """Open a file that is committed as it is; the identity is somewhere in its content."""
        self.path = path
        self.failure: BaseException | None = None
        self._raw = io.FileIO(path, "r+")
        self._owner = os.getpid()
        self._committed_end = self._size = self._raw.seek(0, os.SEEK_END)
        self._position = 0
        self._pages: dict[int, bytearray] = {}
        self._identity = (self._find(identity), identity)
        self._has_journal = False

    @property
    def is_replaced(self) -> bool:
        """Whether the path has come to name something else, or nothing."""
        try:
            there, here = os.stat(self.path), os.fstat(self._raw.fileno())
        except OSError:
            return True
        return (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino)

    # What HDF5 calls.

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place."""
        self._position = offset + (0, self._position, self._size)[whence]
        return self._position

    def tell(self) -> int:
        """The place."""
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Read what HDF5 has written, wherever that is kept."""
        view = memoryview(buffer).cast("B")
        try:
            return self._read(self._position, view)
        except BaseException as error:
            self._fail(error)
            return 0

    def read(self, size: int = -1) -> bytes:
        """The same as bytes."""
        buffer = bytearray(max(self._size - self._position, 0) if size < 0 else size)
        return bytes(buffer[: self.readinto(buffer)])

    def write(self, data: Any) -> int:
        """Write to the disk or keep in memory, as the place demands."""
        view = memoryview(data).cast("B")
        try:
            self._write(self._position, view)
        except BaseException as error:
            self._fail(error)
        self._position += len(view)
        self._size = max(self._size, self._position)
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        """Set the size; what is committed stays on the disk until the next commit."""
        self._size = self._position if size is None else size
        try:
            if self.failure is None and self._is_ours():
                self._raw.truncate(max(self._size, self._committed_end))
        except BaseException as error:
            self._fail(error)
        return self._size

    def flush(self) -> None:
        """Nothing is kept back that a flush could write: ``commit`` does that."""

    # What the saver calls.

    def commit(self) -> None:
        """Make everything that was written since the last commit part of the file.

        Raises what went wrong; the file is as of the last commit then, or will be as of this one
        once ``restore`` has been able to finish it.
        """
        if self.failure is not None:
            raise self.failure
        if not self._is_ours():
            return
        try:
            extents = list(self._extents())
            if extents:
                with _written_journal(self.path, self._identity, extents):
                    self._has_journal = True
                    self._committed_end = max(self._committed_end, self._size)
                    self._apply(extents)
            self._has_journal = False
            self._committed_end = max(self._committed_end, self._size)
            self._pages.clear()
        except BaseException as error:
            self._fail(error)
            raise

    def restore(self) -> None:
        """Go back to the last commit, after HDF5 has closed the file; raises what prevents it."""
        self._pages.clear()
        if self._has_journal:
            recover(self.path)
            self._has_journal = False
        self._raw.truncate(self._committed_end)
        self._size = self._committed_end
        self.failure = None

    def close(self) -> None:
        """Let go of the file as it is; what was not committed is cut off."""
        try:
            if self._is_ours() and not self._has_journal:
                self._raw.truncate(self._committed_end)
        finally:
            self._raw.close()

    def __del__(self) -> None:
        # Not closed by anybody, as in a forked child: nothing that a warning could better.
        raw = getattr(self, "_raw", None)
        if raw is not None:
            raw.close()

    def _is_ours(self) -> bool:
        return os.getpid() == self._owner

    def _fail(self, error: BaseException) -> None:
        if self.failure is None:
            self.failure = error

    def _find(self, identity: bytes) -> int:
        self._raw.seek(0)
        place = (self._raw.read(1 << 20) or b"").find(identity)
        if place < 0:
            raise ValueError("the file has no identity")
        return place

    def _write(self, offset: int, view: memoryview) -> None:
        if self.failure is not None or not self._is_ours():
            if len(view) <= _LARGEST_KEPT:
                self._keep(offset, view)
            return
        within = min(max(self._committed_end - offset, 0), len(view))
        if within:
            self._keep(offset, view[:within])
        if within < len(view):
            _write_at(self._raw, offset + within, view[within:])

    def _keep(self, offset: int, view: memoryview) -> None:
        position = 0
        while position < len(view):
            number, start = divmod(offset + position, _PAGE)
            page = self._pages.get(number)
            if page is None:
                page = self._pages[number] = bytearray(_PAGE)
                _read_at(self._raw, number * _PAGE, memoryview(page))
            taken = min(_PAGE - start, len(view) - position)
            page[start : start + taken] = view[position : position + taken]
            position += taken

    def _read(self, offset: int, view: memoryview) -> int:
        count = max(min(len(view), self._size - offset), 0)
        _read_at(self._raw, offset, view[:count])
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

    def _extents(self) -> Iterator[tuple[int, bytes]]:
        """What is kept in memory, in the order of its places, neighbours together.

        So the superblock is first: an end of file that is too far away harms nobody.
        """
        start, parts = -1, bytearray()
        for number in sorted(self._pages):
            place = number * _PAGE
            if start >= 0 and start + len(parts) != place:
                yield start, bytes(parts)
                start = -1
            if start < 0:
                start, parts = place, bytearray()
            parts += self._pages[number][: max(self._committed_end - place, 0)]
        if start >= 0:
            yield start, bytes(parts)

    def _apply(self, extents: list[tuple[int, bytes]]) -> None:
        for offset, content in extents:
            _write_at(self._raw, offset, memoryview(content))


def recover(path: str) -> bool:
    """Finish a commit that a process was killed in; whether there was one.

    Does nothing to a file that a living process is writing, but waits for the end of its commit.
    """
    journal = journal_of(path)
    _remove_unfinished(f"{journal}.new")
    try:
        stream = open(journal, "rb")  # noqa: SIM115
    except FileNotFoundError:
        return False
    with stream:
        if not _locked(stream) or not _is_still(stream, journal):
            return False
        read = _read_journal(stream.read())
        if read is None:
            return False
        (place, identity), extents = read
        with io.FileIO(path, "r+") as file:
            found = bytearray(len(identity))
            _read_at(file, place, memoryview(found))
            if found != identity:
                # The journal of a file that was replaced by another since.
                return False
            for offset, content in extents:
                _write_at(file, offset, memoryview(content))
        if _lock_file is None:
            stream.close()
        os.unlink(journal)
    return True


def create(path: str, content: bytes, *, overwrite: bool) -> None:
    """Make a file with this content at once; raises FileExistsError where it must not replace one.

    The journal of a file that is replaced goes with it.
    """
    temporary = f"{path}.{os.urandom(4).hex()}.tmp"
    try:
        with open(temporary, "xb") as stream:
            stream.write(content)
        if overwrite:
            _remove(journal_of(path))
            os.replace(temporary, path)
        else:
            _put_new(temporary, path)
    finally:
        _remove(temporary)


def _put_new(temporary: str, path: str) -> None:
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:
        # A filesystem without links, on which a file that comes in between would be replaced.
        if os.path.lexists(path):
            raise FileExistsError(f"{path} exists") from None
        os.replace(temporary, path)


@contextlib.contextmanager
def _written_journal(
    path: str, identity: tuple[int, bytes], extents: list[tuple[int, bytes]]
) -> Iterator[None]:
    """The journal is there, and locked, while this runs; it goes once that has succeeded."""
    journal = journal_of(path)
    unfinished = f"{journal}.new"
    with open(unfinished, "wb") as stream:
        try:
            if _lock_file is not None:
                with contextlib.suppress(OSError):
                    _lock_file(stream.fileno(), _LOCK_AT_ONCE)
            stream.write(_journal(identity, extents))
            stream.flush()
            if _lock_file is None:
                # Windows neither renames nor removes what is open.
                stream.close()
            os.replace(unfinished, journal)
        except BaseException:
            _remove(unfinished)
            raise
        yield
        os.unlink(journal)


def _journal(identity: tuple[int, bytes], extents: list[tuple[int, bytes]]) -> bytes:
    place, mark = identity
    parts = [_MAGIC, _HEADER.pack(place, len(mark), len(extents)), mark]
    for offset, content in extents:
        parts += [_EXTENT.pack(offset, len(content)), content]
    body = b"".join(parts)
    return body + _CHECKSUM.pack(zlib.crc32(body))


def _read_journal(content: bytes) -> tuple[tuple[int, bytes], list[tuple[int, bytes]]] | None:
    """The identity and the extents of a journal; None where it is not whole."""
    body = content[: -_CHECKSUM.size]
    is_whole = body.startswith(_MAGIC) and content.endswith(_CHECKSUM.pack(zlib.crc32(body)))
    if not is_whole:
        return None
    position = len(_MAGIC)
    place, length, count = _HEADER.unpack_from(body, position)
    position += _HEADER.size
    identity = body[position : position + length]
    position += length
    extents = []
    for _ in range(count):
        offset, size = _EXTENT.unpack_from(body, position)
        position += _EXTENT.size
        extents.append((offset, body[position : position + size]))
        position += size
    return (place, identity), extents


def _locked(stream: BinaryIO) -> bool:
    """Take a journal's lock, which its writer holds for as long as it lives and is at work."""
    if _lock_file is None:
        return True
    end = time.monotonic() + _MOST_SECONDS
    while True:
        try:
            _lock_file(stream.fileno(), _LOCK_AT_ONCE)
        except BlockingIOError:
            if time.monotonic() > end:
                return False
            time.sleep(0.001)
        except OSError:
            # A filesystem without locks.
            return True
        else:
            return True


def _is_still(stream: BinaryIO, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(stream.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


def _remove_unfinished(path: str) -> None:
    with contextlib.suppress(OSError):
        if time.time() - os.stat(path).st_mtime > _ABANDONED_SECONDS:
            os.unlink(path)


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def _read_at(file: io.FileIO, offset: int, view: memoryview) -> None:
    """Fill a buffer from a file; what is beyond its end is left as it was."""
    file.seek(offset)
    position = 0
    while position < len(view):
        count = file.readinto(view[position:])
        if not count:
            return
        position += count


def _write_at(file: io.FileIO, offset: int, view: memoryview) -> None:
    file.seek(offset)
    position = 0
    while position < len(view):
        # A disk that becomes full takes part of it first, and raises at what is left.
        position += file.write(view[position:]) or 0
