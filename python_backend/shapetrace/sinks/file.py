"""A trace file whose place is tried out long before there is a trace to write."""

from __future__ import annotations

import os
import stat

from shapetrace._errors import TraceFileError
from shapetrace.events import codec
from shapetrace.events.model import Trace


class FileSink:
    """A file that always holds one whole trace, or what it held before."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._given = os.fspath(path)
        # The program may change its working directory meanwhile.
        self._path = os.path.abspath(self._given)

    @property
    def name(self) -> str:
        """The file, as the user named it."""
        return self._given

    def open(self, only_over_traces: bool = False) -> None:
        """Try whether the file can be written, without changing it."""
        try:
            _try_to_write(self._path)
            if only_over_traces and _holds_something_else(self._path):
                advice = "remove it, or name another file"
                raise TraceFileError(f"{self._given} is there already and is no trace: {advice}")
        except OSError as error:
            reason = _ADVICE.get(type(error)) or f"{error.strerror}; choose another place"
            raise TraceFileError(f"cannot write {self._given}: {reason}") from None
        except ValueError as error:
            raise TraceFileError(f"cannot write {self._given!r}: {error}") from None

    def write(self, trace: Trace) -> None:
        """Write the whole trace, or change nothing."""
        codec.save(trace, self._path)

    def close(self) -> None:
        """Nothing stays open between writes."""


def _holds_something_else(path: str) -> bool:
    """Whether there is a file that no trace was written to: the program itself, perhaps."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
        with open(path, "rb") as stream:
            beginning = stream.read(_ENOUGH)
    except OSError:
        return False  # there is none, or nobody may read it
    return bool(beginning) and b"shapetrace/" not in beginning


_ENOUGH = 256
"""The format stands within so many bytes of a trace file."""

_ADVICE: dict[type[OSError], str] = {
    FileNotFoundError: "its folder does not exist; make it first, or choose another place",
    NotADirectoryError: "its folder does not exist; make it first, or choose another place",
    IsADirectoryError: "it is a folder; name a file in it",
    PermissionError: "it is not permitted there; choose another place",
}


def _try_to_write(path: str) -> None:
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and stat.S_ISDIR(mode):
        raise IsADirectoryError
    if mode is not None and not stat.S_ISREG(mode):
        if not os.access(path, os.W_OK):
            raise PermissionError
        return
    # A new file is put in place of the old one, so it is the folder that has to allow it.
    folder = os.path.dirname(os.path.realpath(path))
    probe = os.path.join(folder, f".shapetrace-{os.urandom(8).hex()}.tmp")
    os.close(os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    os.unlink(probe)
