"""The errors Shapetrace raises on purpose.

ShapetraceError
├── TraceFileError        a trace file that cannot be read or written
├── ProgramError          a program that `shapetrace run` cannot start
├── AlreadyTracingError   a second recording on top of a running one
└── CannotFollowError     a function whose variables cannot be heard of
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


class CannotFollowError(ShapetraceError):
    """A function that cannot be followed: its source is not there, or is not what runs."""
