"""A file's journal: what is to be put into place, written down before that is begun.

It is there under its name only as a whole, and locked for as long as its writer lives and is at
work, so that another process that finds it knows whether to wait or to finish what was begun.
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
"""One call instead of two, so that a commit is put into place faster; not on Windows."""

_BINARY: Final = getattr(os, "O_BINARY", 0)
_MAGIC: Final = b"shapetrace journal 1\n"
_HEADER: Final = struct.Struct("<QII")
_EXTENT: Final = struct.Struct("<QQ")
_IDENTITY_SIZE: Final = 32
_CHECKSUM: Final = struct.Struct("<I")
_MOST_SECONDS: Final = 5.0
"""How long a living process is waited for that is just committing."""

_IDENTITY: Final = re.compile(rb"[0-9a-f]{32}")
"""What a file is known by: sixteen random bytes. Nothing that every file has is one."""

_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | _BINARY

Extents: TypeAlias = list[tuple[int, bytes]]
"""Places in a file, and what is to be there."""


class Left(Enum):
    """What is beside a file."""

    NOTHING = "no journal"
    BUSY = "the journal of a living process, which is committing"
    UNFINISHED = "the journal of a commit that a process was killed in"
    FOREIGN = "something else in the journal's place: damaged, another file's, somebody else's"


def journal_of(path: str) -> str:
    """Where a file's journal is, as long as there is one."""
    return f"{os.path.realpath(path)}.journal"


def left_beside(path: str) -> Left:
    """What is beside a file now.

    Changes nothing, but waits for the end of a living process's commit.
    """
    return _looked_at(path, finish=False)


def recover(path: str) -> bool:
    """Finish a commit that a process was killed in; whether there was one.

    Does nothing to a file that a living process is writing, but waits for the end of its commit.
    What is written is in the journal, lies within the file as it is, and is checked as a whole
    before the first byte of it is written.
    """
    return _looked_at(path, finish=True) is Left.UNFINISHED


def _looked_at(path: str, *, finish: bool) -> Left:
    journal = journal_of(path)
    try:
        # Neither through a link, nor waiting for the other end of a pipe.
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
    """What a journal has for this file; None where it is not whole, or not of this file.

    A commit writes down what lies within the file as it was at the commit before, each place once.
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
        # The journal of a file that was replaced by another since.
        return None
    end = 0
    for offset, content in sorted(extents):
        if not content or not end <= offset <= size - len(content):
            return None
        end = offset + len(content)
    return extents


def _largest_journal(size: int) -> int:
    """How long the journal of a file of this size can be: each byte by itself."""
    beside = len(_MAGIC) + _HEADER.size + _IDENTITY_SIZE + _CHECKSUM.size
    return beside + size * (1 + _EXTENT.size)


@contextlib.contextmanager
def written_journal(journal: str, identity: tuple[int, bytes], extents: Extents) -> Iterator[None]:
    """The journal is there, and locked, while this runs; it goes once that has succeeded."""
    with new_beside(journal) as (stream, unfinished):
        if _lock_file is not None:
            with suppressing(OSError):
                _lock_file(stream.fileno(), _LOCK_AT_ONCE)
        stream.write(_journal(identity, extents))
        stream.flush()
        if _lock_file is None:
            # Windows neither renames nor removes what is open.
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
    """The identity and the extents of a journal; None where it is not whole."""
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
    """Remove a file, if it is there and can be."""
    with suppressing(OSError):
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
