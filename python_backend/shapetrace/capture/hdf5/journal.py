"""A file's journal: what is to be put into place, written down before that is begun.

It is there under its name only as a whole, and locked for as long as its writer lives and is at
work, so that whoever else finds it knows whether to wait or to finish what was begun.
"""

from __future__ import annotations

import contextlib
import io
import os
import struct
import time
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final, TypeAlias

_lock_file: Callable[[int, int], None] | None
try:
    import fcntl

    _lock_file = fcntl.flock
    _LOCK_AT_ONCE = fcntl.LOCK_EX | fcntl.LOCK_NB
except ImportError:  # Windows
    _lock_file = None
    _LOCK_AT_ONCE = 0

_write_to: Callable[[int, memoryview, int], int] | None = getattr(os, "pwrite", None)
"""One call instead of two, so that a commit is put into place faster; not on Windows."""

_MAGIC: Final = b"shapetrace journal 1\n"
_HEADER: Final = struct.Struct("<QII")
_EXTENT: Final = struct.Struct("<QQ")
_CHECKSUM: Final = struct.Struct("<I")
_MOST_SECONDS: Final = 5.0
"""How long a living process is waited for that is just committing."""

_ABANDONED_SECONDS: Final = 60.0
"""A journal that was not finished in this time belongs to nobody any more."""

Extents: TypeAlias = list[tuple[int, bytes]]
"""Places in a file, and what is to be there."""


def journal_of(path: str) -> str:
    """Where a file's journal is, as long as there is one."""
    return f"{path}.journal"


def recover(path: str) -> bool:
    """Finish a commit that a process was killed in; whether there was one.

    Does nothing to a file that a living process is writing, but waits for the end of its commit.
    """
    journal = journal_of(path)
    _remove_unfinished(f"{journal}.new")
    try:
        stream = open(journal, "rb")  # noqa: SIM115 (closed below)
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
            read_at(file, place, memoryview(found))
            if found != identity:
                # The journal of a file that was replaced by another since.
                return False
            for offset, content in extents:
                write_at(file, offset, memoryview(content))
        if _lock_file is None:
            stream.close()
        os.unlink(journal)
    return True


@contextlib.contextmanager
def written_journal(path: str, identity: tuple[int, bytes], extents: Extents) -> Iterator[None]:
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
            remove(unfinished)
            raise
        yield
        os.unlink(journal)


def _journal(identity: tuple[int, bytes], extents: Extents) -> bytes:
    place, mark = identity
    parts = [_MAGIC, _HEADER.pack(place, len(mark), len(extents)), mark]
    for offset, content in extents:
        parts += [_EXTENT.pack(offset, len(content)), content]
    body = b"".join(parts)
    return body + _CHECKSUM.pack(zlib.crc32(body))


def _read_journal(content: bytes) -> tuple[tuple[int, bytes], Extents] | None:
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


def remove(path: str) -> None:
    """Remove a file, if it is there and can be."""
    with contextlib.suppress(OSError):
        os.unlink(path)


def read_at(file: io.FileIO, offset: int, view: memoryview) -> None:
    """Fill a buffer from a file; what is beyond its end is left as it was."""
    file.seek(offset)
    position = 0
    while position < len(view):
        count = file.readinto(view[position:])
        if not count:
            return
        position += count


def write_at(file: io.FileIO, offset: int, view: memoryview) -> None:
    """Write all of a buffer to a place in a file."""
    # A disk that becomes full takes part of it first, and raises at what is left.
    position = 0
    while position < len(view):
        if _write_to is not None:
            position += _write_to(file.fileno(), view[position:], offset + position)
        else:
            file.seek(offset + position)
            position += file.write(view[position:]) or 0
