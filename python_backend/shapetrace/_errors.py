"""The errors Shapetrace raises on purpose.

ShapetraceError
├── TraceFileError        a trace file that cannot be read or written
├── ProgramError          a program that `shapetrace run` cannot start
├── AlreadyTracingError   a second recording on top of a running one
├── CannotFollowError     a function whose variables cannot be heard of
├── NameSyntaxError       a name of a variable that is no name
├── CaptureError          values that cannot be captured as it was asked for
│   └── PathError         a path of values that is no path
└── CaptureFileError      a file of captured values that cannot be written or read
"""

from __future__ import annotations


class ShapetraceError(Exception):
    """Base of all errors raised on purpose; its message says what to do."""


class TraceFileError(ShapetraceError):
    """A trace file that is missing, cut short, foreign, newer than this version, or unwritable."""


class ProgramError(ShapetraceError):
    """A program that cannot be started: no such file, no such module."""


class AlreadyTracingError(ShapetraceError):
    """A second recording was started while one is running."""


class CaptureError(ShapetraceError):
    """A ``ModelTracer`` cannot do what it was asked for."""


class PathError(CaptureError):
    """A path of values that cannot be read; the message has the place of the mistake."""


class CaptureFileError(ShapetraceError):
    """A file of captured values that exists already, cannot be made or read, or needs h5py."""


class CannotFollowError(ShapetraceError):
    """A function that cannot be followed: its source is not there, or is not what runs."""

    def __init__(self, message: str, reason: str | None = None) -> None:
        """``reason`` is the message without the function's name, where that is in it."""
        super().__init__(message)
        self.reason = message if reason is None else reason


class NameSyntaxError(ShapetraceError):
    """A name to follow is not written as a variable or a part of one."""
