"""Files that a command writes, whose place is tried out long before there is anything to write."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from shapetrace._asynchronous import is_asynchronous
from shapetrace._errors import TraceFileError
from shapetrace._files import FilePath, advice, descriptor_of, status, try_to_write, write_whole
from shapetrace.events import codec
from shapetrace.events.model import Trace


@dataclass(frozen=True, slots=True)
class OutputKind:
    """A kind of output, and how its files begin."""

    lacking: str
    """The reason why a file is not of this kind."""
    beginning: re.Pattern[bytes]


TRACE: Final = OutputKind("is not a trace", re.compile(rb'\s*\{\s*"format"\s*:\s*"shapetrace/'))
REPORT: Final = OutputKind(
    "is not a report of `shapetrace diff`",
    re.compile(
        rb'\s*\{\s*"format"\s*:\s*"shapetrace-diff/'
        rb"|# `.*` and `.*` (?:differ|are alike)\r?\n"
        rb"|(?:\x1b\[[\d;]*m)*A(?:\x1b\[[\d;]*m)*  .* \xc2\xb7 .*\n"
        rb"(?:\x1b\[[\d;]*m)*B(?:\x1b\[[\d;]*m)*  .* \xc2\xb7 "
    ),
)
_ENOUGH: Final = 1 << 16
"""A file of ours is known by so many bytes of its beginning."""


class OutputFile:
    """A file that always holds something whole, and replaces nothing but what is of its kind."""

    def __init__(
        self, path: FilePath, kind: OutputKind | None, inputs: Sequence[FilePath] = ()
    ) -> None:
        """Without a kind, whatever is there may be replaced, but for the inputs."""
        self._given = os.fspath(path)
        self._kind = kind
        # The program may change its working directory meanwhile.
        self._path = os.path.abspath(self._given)
        self._inputs = inputs

    @property
    def name(self) -> str:
        """The file, as the user named it."""
        return self._given

    def open(self) -> None:
        """Try whether the file can be written, without changing it."""
        try:
            try_to_write(self._path)
            self._refuse_what_is_not_ours()
        except (OSError, ValueError) as error:  # ValueError: the path holds a null character.
            if is_asynchronous(error):
                raise
            raise _refusal(self._given, error) from None

    def write(self, pieces: Iterable[bytes]) -> None:
        """Write all of this, or change nothing."""
        try:
            # Something else may have been put there since.
            self._refuse_what_is_not_ours()
            write_whole(self._path, pieces)
        except (OSError, ValueError) as error:
            if is_asynchronous(error):
                raise
            # The whole path: the user may not be in the folder any more where it was given.
            raise _refusal(self._path, error) from None

    def _refuse_what_is_not_ours(self) -> None:
        present = status(self._path)
        if present is None or not stat.S_ISREG(present.st_mode):
            return
        if descriptor_of(self._path) is not None:
            return  # The shell has made this file for us.
        with open(self._path, "rb") as stream:
            beginning = stream.read(_ENOUGH)
        is_input = any(_is_same(path, present) for path in self._inputs)
        kind = self._kind
        is_ours = kind is None or not beginning or kind.beginning.match(beginning)
        if is_input and (is_ours or TRACE.beginning.match(beginning)):
            raise TraceFileError(f"{self._given} is an input of this command: name another file")
        if kind is not None and not is_ours:
            raise TraceFileError(
                f"{self._given} exists already and {kind.lacking}: remove it, or name another file"
            )


def _refusal(path: str, error: Exception) -> TraceFileError:
    name = path if path.isprintable() else repr(path)
    return TraceFileError(f"cannot write {name}: {advice(error)}")


def _is_same(path: FilePath, file: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(path), file)
    except (OSError, ValueError) as error:
        if is_asynchronous(error):
            raise
        return False


class FileSink:
    """A file that always holds one whole trace, or what it held before."""

    def __init__(self, path: FilePath, inputs: Sequence[FilePath] = ()) -> None:
        self._file = OutputFile(path, TRACE, inputs)

    @property
    def name(self) -> str:
        """The file, as the user named it."""
        return self._file.name

    def open(self) -> None:
        """Try whether the file can be written, without changing it."""
        self._file.open()

    def write(self, trace: Trace) -> None:
        """Write the whole trace, or change nothing."""
        self._file.write(codec.pieces(trace))

    def close(self) -> None:
        """Nothing stays open between writes."""
