"""A file's journal: the writes of a commit, recorded before they begin.

It gets its name only when complete, and stays locked while its writer is alive and at work, so that
another process that finds it knows whether to wait or to finish the commit.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import stat
import struct
import time
import zlib
from collections.abc import Callable, Iterator
from enum import Enum
from typing import BinaryIO, Final, TypeAlias

from shapetrace._asynchronous import is_asynchronous, suppressing
from shapetrace._files import new_beside

_lock_file: Callable[[int, int], None] | None
try:
    import fcntl

    _lock_file = fcntl.flock
    _LOCK_AT_ONCE = fcntl.LOCK_EX | fcntl.LOCK_NB
except ImportError:  # Windows
    _lock_file = None
    _LOCK_AT_ONCE = 0

_write_to: Callable[[int, memoryview, int], int] | None = getattr(os, "pwrite", None)
"""One call instead of two, for faster commits; not on Windows."""

_BINARY: Final = getattr(os, "O_BINARY", 0)
_MAGIC: Final = b"shapetrace journal 1\n"
_HEADER: Final = struct.Struct("<QII")
_EXTENT: Final = struct.Struct("<QQ")
_IDENTITY_SIZE: Final = 32
_CHECKSUM: Final = struct.Struct("<I")
_MOST_SECONDS: Final = 5.0
"""How long to wait for the commit of a living process."""

_IDENTITY: Final = re.compile(rb"[0-9a-f]{32}")
"""Format of a file's identity: sixteen random bytes."""

_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | _BINARY

Extents: TypeAlias = list[tuple[int, bytes]]
"""Addresses in a file, and the bytes to write there."""


class Left(Enum):
    """The state of a file's journal."""

    NOTHING = "no journal"
    BUSY = "the journal of a living process, which is committing"
    UNFINISHED = "the journal of a commit that a process was killed in"
    FOREIGN = "something else in the journal's place: damaged, another file's or program's"


def journal_of(path: str) -> str:
    """The path of a file's journal."""
    return f"{os.path.realpath(path)}.journal"


def left_beside(path: str) -> Left:
    """The state of a file's journal now.

    Changes nothing, but waits for a living process's commit.
    """
    return _looked_at(path, finish=False)


def recover(path: str) -> bool:
    """Finish the commit of a killed process; return whether there was one.

    Does nothing to a file that a living process is writing, but waits for the end of its commit.
    What is written is in the journal, lies within the file as it is, and is checked as a whole
    before the first byte of it is written.
    """
    return _looked_at(path, finish=True) is Left.UNFINISHED


def _looked_at(path: str, *, finish: bool) -> Left:
    journal = journal_of(path)
    try:
        # Do not follow a link, nor wait for the other end of a pipe.
        descriptor = os.open(journal, os.O_RDONLY | _NO_LINK)
    except FileNotFoundError:
        return Left.NOTHING
    except OSError as error:
        if is_asynchronous(error):
            raise
        return Left.FOREIGN
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return Left.FOREIGN
        if not _locked(stream):
            return Left.BUSY
        if not _is_still(stream, journal):
            return Left.NOTHING
        try:
            with io.FileIO(path, "r+" if finish else "r") as file:
                extents = _extents_for(file, stream)
                if extents is None:
                    return Left.FOREIGN
                for offset, content in extents if finish else ():
                    write_at(file, offset, memoryview(content))
        except FileNotFoundError:
            return Left.FOREIGN
        if finish:
            if _lock_file is None:
                stream.close()
            os.unlink(journal)
    return Left.UNFINISHED


def _extents_for(file: io.FileIO, journal: BinaryIO) -> Extents | None:
    """The extents of a journal for this file; None if it is incomplete or of another file.

    A commit records only addresses within the file as of the last commit, each once.
    """
    ours, theirs = os.fstat(file.fileno()), os.fstat(journal.fileno())
    size = ours.st_size
    if theirs.st_uid != ours.st_uid or theirs.st_size > _largest_journal(size):
        return None
    read = _read_journal(journal.read(theirs.st_size))
    if read is None:
        return None
    (place, identity), extents = read
    found = bytearray(len(identity))
    if len(identity) > size or place > size - len(identity):
        return None
    read_at(file, place, memoryview(found))
    if found != identity:
        # The journal is of a file that was replaced since.
        return None
    end = 0
    for offset, content in sorted(extents):
        if not content or not end <= offset <= size - len(content):
            return None
        end = offset + len(content)
    return extents


def _largest_journal(size: int) -> int:
    """The greatest length of a journal for a file of this size: an extent for each byte."""
    beside = len(_MAGIC) + _HEADER.size + _IDENTITY_SIZE + _CHECKSUM.size
    return beside + size * (1 + _EXTENT.size)


@contextlib.contextmanager
def written_journal(journal: str, identity: tuple[int, bytes], extents: Extents) -> Iterator[None]:
    """Context with a locked journal, which is removed after success."""
    with new_beside(journal) as (stream, unfinished):
        if _lock_file is not None:
            with suppressing(OSError):
                _lock_file(stream.fileno(), _LOCK_AT_ONCE)
        stream.write(_journal(identity, extents))
        stream.flush()
        if _lock_file is None:
            # Windows neither renames nor removes open files.
            stream.close()
        os.replace(unfinished, journal)
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
    """The identity and the extents of a journal; None if it is incomplete."""
    body = content[: -_CHECKSUM.size]
    is_whole = body.startswith(_MAGIC) and content.endswith(_CHECKSUM.pack(zlib.crc32(body)))
    if not is_whole:
        return None
    position = len(_MAGIC)
    extents = []
    try:
        place, length, count = _HEADER.unpack_from(body, position)
        position += _HEADER.size
        identity = body[position : position + length]
        position += length
        for _ in range(count):
            offset, size = _EXTENT.unpack_from(body, position)
            position += _EXTENT.size
            extents.append((offset, body[position : position + size]))
            position += size
    except struct.error:
        return None
    if position != len(body) or not _IDENTITY.fullmatch(identity):
        return None
    return (place, identity), extents


def _locked(stream: BinaryIO) -> bool:
    """Take a journal's lock, which its writer holds while it is alive and at work."""
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
        except OSError as error:
            if is_asynchronous(error):
                raise
            # A filesystem without locks.
            return True
        else:
            return True


def _is_still(stream: BinaryIO, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(stream.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


def remove(path: str) -> None:
    """Remove a file, if it exists and can be removed."""
    with suppressing(OSError):
        os.unlink(path)


def read_at(file: io.FileIO, offset: int, view: memoryview) -> None:
    """Fill a buffer from a file; the part beyond the file's end stays unchanged."""
    file.seek(offset)
    position = 0
    while position < len(view):
        count = file.readinto(view[position:])
        if not count:
            return
        position += count


def write_at(file: io.FileIO, offset: int, view: memoryview) -> None:
    """Write all of a buffer to an address in a file."""
    # A disk that becomes full takes a part first, and raises at the rest.
    position = 0
    while position < len(view):
        if _write_to is not None:
            position += _write_to(file.fileno(), view[position:], offset + position)
        else:
            file.seek(offset + position)
            position += file.write(view[position:]) or 0
