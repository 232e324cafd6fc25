"""Writing files: whole or not at all, and never through a link that is a stranger's.

A path that is a pipe, a device or a descriptor of this process (``/dev/stdout``, ``/dev/fd/3``)
is written to as it is. Any other is replaced by a new file, which comes into being beside it under
a name that cannot be guessed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from typing import BinaryIO, Final, TextIO, TypeAlias

from shapetrace._asynchronous import is_asynchronous, suppressing, surely

FilePath: TypeAlias = str | os.PathLike[str]

_AS_IT_IS: Final = (
    getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
)
"""Flags to open a file neither through a link nor waiting for the reader of a pipe."""

_MOST_LINKS: Final = 40
_DESCRIPTOR: Final = re.compile(r"/(?:dev|proc/(?:self|thread-self|\d+))/fd/(\d+)")

_OWNER: Final = getattr(os, "geteuid", None)
"""None on Windows, where files have no such owner."""


def write_whole(path: FilePath, pieces: Iterable[bytes]) -> None:
    """Put these bytes into a file, or leave it as it is; raises OSError or ValueError."""
    descriptor = descriptor_of(path)
    if descriptor is not None:
        _write_to_descriptor(descriptor, pieces)
        return
    present = status(path)
    if present is None or stat.S_ISREG(present.st_mode):
        _replace(place_of(path), pieces, present)
    elif stat.S_ISDIR(present.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    else:
        content = b"".join(pieces)
        with open(path, "wb") as stream:
            stream.write(content)


def try_to_write(path: FilePath) -> None:
    """Raise what ``write_whole`` would raise before its first byte; changes nothing."""
    if descriptor_of(path) is not None:
        return
    present = status(path)
    if present is not None and stat.S_ISDIR(present.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if present is not None and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    if present is None or stat.S_ISREG(present.st_mode):
        # A new file is put in place of the old one, so the folder has to allow it as well.
        with new_beside(place_of(path)):
            pass


@contextlib.contextmanager
def new_beside(path: FilePath, mode: int = 0o666) -> Iterator[tuple[BinaryIO, str]]:
    """A new empty file in the folder of a path, and its name, which was not there.

    It is closed and removed at the end, unless it has been given another name.
    """
    folder = os.path.dirname(os.fspath(path))
    name = os.path.join(folder, f".shapetrace-{os.urandom(8).hex()}.tmp")
    stream: BinaryIO | None = None
    is_ours = True
    try:
        stream = _created(name, mode)
        yield stream, name
    except FileExistsError:
        is_ours = stream is not None
        raise
    finally:
        # An exception of the program's may have come just when the file had been made.
        if is_ours:
            surely(_discard, stream, name)


def _created(name: str, mode: int) -> BinaryIO:
    return open(name, "xb", opener=partial(os.open, mode=mode))


def open_to_append(path: FilePath, *, encoding: str, errors: str) -> TextIO:
    """A file of ours to go on with, or a new one; raises OSError at a link, or at what is no file.

    Its name can be guessed, so another user may have put something there.
    """
    flags = os.O_APPEND | os.O_CREAT | os.O_WRONLY | _AS_IT_IS
    stream = os.fdopen(os.open(path, flags, 0o666), "a", encoding=encoding, errors=errors)
    if stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        return stream
    stream.close()
    raise FileExistsError(errno.EEXIST, "it is no file")


def place_of(path: FilePath) -> str:
    """Where a file lies, or would lie, that is named by this path; its links are followed.

    Raises PermissionError at a link of another user in a folder that all users can write to: it may
    lead to a file of ours. Linux refuses to open such a link, but not to rename over it.
    """
    name = os.path.abspath(path)
    for _ in range(_MOST_LINKS):
        try:
            link = os.lstat(name)
        except FileNotFoundError:
            break
        if not stat.S_ISLNK(link.st_mode):
            break
        _refuse_planted(name, link)
        name = os.path.join(os.path.dirname(name), os.readlink(name))
    return os.path.realpath(path)


def descriptor_of(path: FilePath) -> int | None:
    """The number of the descriptor of this process that a path refers to."""
    name = os.path.abspath(path)
    for _ in range(_MOST_LINKS):
        found = _DESCRIPTOR.fullmatch(name)
        if found is not None:
            process = name.split("/")[2]
            is_own = not process.isdecimal() or int(process) == os.getpid()
            return int(found[1]) if is_own else None
        try:
            name = os.path.abspath(os.path.join(os.path.dirname(name), os.readlink(name)))
        except (OSError, ValueError) as error:
            if is_asynchronous(error):
                raise
            return None
    return None


def status(path: FilePath) -> os.stat_result | None:
    """The result of ``os.stat`` for a path; None if there is nothing."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def advice(error: Exception) -> str:
    """Why a file cannot be written, and what to do."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return "its folder does not exist; make it first, or choose another place"
    if isinstance(error, IsADirectoryError):
        return "it is a folder; name a file in it"
    if isinstance(error, PermissionError):
        return "it is not permitted there; choose another place"
    reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
    return f"{reason[:1].lower()}{reason[1:]}; choose another place"


@contextlib.contextmanager
def replacing(path: str, mode: int = 0o666) -> Iterator[tuple[BinaryIO, str]]:
    """A new file and its name, which takes the place of ``path`` unless this ends by an error."""
    with new_beside(path, mode) as (stream, name):
        yield stream, name
        if not stream.closed:
            stream.flush()
            os.fsync(stream.fileno())
            stream.close()  # Windows replaces no open file.
        os.replace(name, path)


def _discard(stream: BinaryIO | None, name: str) -> None:
    if stream is not None:
        with suppressing(OSError):
            stream.close()  # with what it could not write
    with suppressing(OSError):
        os.unlink(name)


def _replace(path: str, pieces: Iterable[bytes], present: os.stat_result | None) -> None:
    if present is not None and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    # A file that only its owner could read stays so while it is written.
    with replacing(path, 0o666 if present is None else 0o600) as (stream, name):
        stream.writelines(pieces)
        if present is not None:
            _give_to_owner(name, present)
            os.chmod(name, stat.S_IMODE(present.st_mode))


def _give_to_owner(name: str, present: os.stat_result) -> None:
    chown = getattr(os, "chown", None)
    if chown is not None:
        with contextlib.suppress(PermissionError):  # of a file of another user
            chown(name, present.st_uid, present.st_gid)


def _refuse_planted(name: str, link: os.stat_result) -> None:
    folder = os.stat(os.path.dirname(name))
    is_everybodys = folder.st_mode & stat.S_ISVTX and folder.st_mode & stat.S_IWOTH
    if _OWNER is not None and is_everybodys and link.st_uid not in (_OWNER(), folder.st_uid):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _write_to_descriptor(number: int, pieces: Iterable[bytes]) -> None:
    content = b"".join(pieces)
    for stream in (sys.stdout, sys.stderr):
        # Before what is written now comes what was printed so far.
        with suppressing(AttributeError, OSError, ValueError):
            stream.flush()
    # Not opened by its name: that would begin at the start of a file it was redirected to.
    with os.fdopen(os.dup(number), "wb") as stream:
        stream.write(content)
