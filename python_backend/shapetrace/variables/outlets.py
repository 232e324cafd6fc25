"""Outlets of events: a stream, a function, or both.

An outlet that fails is dropped, which is reported once; the program goes on. Functions of the
program that an outlet calls, such as the ``write`` of its stream, are not followed.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from io import BufferedWriter, FileIO, TextIOWrapper
from types import BuiltinMethodType
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from shapetrace._asynchronous import is_asynchronous
from shapetrace.events.followed import FollowedEvent, FollowingNote
from shapetrace.variables import calls
from shapetrace.variables.rendering import Rendering
from shapetrace.views.followed import FollowedOptions
from shapetrace.views.styled import StyledText
from shapetrace.views.terminal_text import is_terminal, terminal_width, wants_color

Outlet: TypeAlias = Callable[[FollowedEvent], object]
"""Is called with each event."""


class TextStream(Protocol):
    """A stream for text."""

    def write(self, text: str, /) -> object:
        """Write a text."""
        ...


class Idle:
    """An outlet that may have no receiver."""

    def is_idle(self) -> bool:
        """Return whether calling it would do nothing."""
        raise NotImplementedError

    def __call__(self, event: FollowedEvent) -> None:
        """Tell of an event."""
        raise NotImplementedError


class _Known(NamedTuple):
    """Cached properties of the last stream."""

    stream: Any
    is_plain: bool
    """Whether writing to it runs none of the program's code."""
    rendering: Rendering


class _Terminal(NamedTuple):
    """A stream's answer to ``isatty``, asked once, as it may run code of the program's."""

    is_one: bool

    def isatty(self) -> bool:
        """Return whether the stream is a terminal."""
        return self.is_one


class Printing:
    """Prints events as a tree, to a stream or to the current stdout."""

    def __init__(self, stream: Any = None, color: str = "auto", width: int | None = None) -> None:
        self.stream = stream
        self.color, self.width = color, width
        self._known = _Known(None, False, Rendering(FollowedOptions(), False, None))

    def __call__(self, event: FollowedEvent) -> None:
        """Print an event."""
        self._print(lambda rendering: rendering.text_of(event))

    def show(self, text: StyledText) -> None:
        """Print lines."""
        self._print(lambda rendering: rendering.lines(text.lines))

    def again(self, key: object, seconds: float | None = None) -> bool:
        """Print lines again if they were printed before, optionally with a duration."""
        if telling.is_on:
            return True
        stream = sys.stdout if self.stream is None else self.stream
        known = self._known
        if stream is not known.stream:
            known = self._look_at(stream)
        if stream is None:
            return True
        rendering = known.rendering
        found = rendering.known.get(key)
        if found is None:
            return False
        text = found[0]
        if seconds is not None:
            text = rendering.timed(text, seconds)
        try:
            if known.is_plain and type(stream.write) is BuiltinMethodType:
                write(stream, text)
                return True
            telling.is_on = True
            try:
                write(stream, text)
            finally:
                telling.is_on = False
        except UnicodeEncodeError:
            self._look_at(stream)
            return False  # its new encoding is not known yet
        return True

    def _print(self, text_by: Callable[[Rendering], str]) -> None:
        stream = sys.stdout if self.stream is None else self.stream
        known = self._known
        if stream is not known.stream:
            known = self._look_at(stream)
        if stream is None:
            return
        try:
            write(stream, text_by(known.rendering))
        except UnicodeEncodeError:  # reconfigured to another encoding since the last check
            known = self._look_at(stream)
            try:
                write(stream, text_by(known.rendering))
            except UnicodeEncodeError:
                pass  # a stream without an encoding

    def _look_at(self, stream: Any) -> _Known:
        """Determine a stream's properties, in one object, as other threads print as well."""
        was_telling, telling.is_on = telling.is_on, True
        try:
            terminal = _Terminal(hasattr(stream, "isatty") and is_terminal(stream))
            width = self.width or terminal_width(os.environ, 80)
            color = wants_color(self.color, terminal, os.environ)
            cuts = self.width is not None or terminal.is_one
            options = FollowedOptions(width, _working_directory(), cuts_callers=cuts)
            rendering = Rendering(options, color, getattr(stream, "encoding", None))
        finally:
            telling.is_on = was_telling
        known = self._known = _Known(stream, _is_plain(stream), rendering)
        return known

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Printing) and other.stream is self.stream

    def __hash__(self) -> int:
        return hash((Printing, id(self.stream)))


def write(stream: Any, text: str) -> None:
    """Write lines to a stream at once, so that lines of other threads do not come between.

    Raises ``UnicodeEncodeError`` where the stream does not take them, and then has taken nothing.
    """
    try:
        stream.write(text)
        if calls.process_name is not None:
            # Processes share the target of stdout; buffered lines would be cut anywhere.
            stream.flush()
    except UnicodeEncodeError:
        raise
    except (AttributeError, OSError, ValueError) as error:
        if is_asynchronous(error):
            raise
        # None, closed, or a broken pipe: the program can go on without our text.


def _is_plain(stream: Any) -> bool:
    """Return whether a stream is one of Python's own, which writes to a file."""
    if type(stream) is not TextIOWrapper:
        return False
    try:
        return type(stream.buffer) is BufferedWriter and type(stream.buffer.raw) is FileIO
    except ValueError as error:  # it was detached
        if is_asynchronous(error):
            raise
        return False


def _working_directory() -> str | None:
    try:
        return os.getcwd()
    except OSError as error:
        if is_asynchronous(error):
            raise
        return None


TO_STDOUT: Final = Printing()


class _Telling(threading.local):
    """Whether this thread is calling an outlet."""

    is_on = False


telling: Final = _Telling()
"""Within the block, calls of this thread are not followed."""


class Outlets:
    """The outlets of one function."""

    def __init__(self, outlets: tuple[Outlet, ...]) -> None:
        self.all = outlets
        printing = [outlet for outlet in outlets if isinstance(outlet, Printing)]
        self._idle = [outlet for outlet in outlets if isinstance(outlet, Idle)]
        is_only = len(printing) == 1 and 1 + len(self._idle) == len(outlets)
        self._only = printing[0] if is_only else None
        self.alone = None if self._idle else self._only
        """The print stream, if it is the only outlet: it needs no event for lines it has
        printed."""

    def printing(self) -> Printing | None:
        """The print stream, if printing is the only outlet now."""
        if self._only is None or telling.is_on:
            return None
        for outlet in self._idle:
            if not outlet.is_idle():
                return None
        return self._only

    def tell(self, event: FollowedEvent) -> None:
        """Tell of an event."""
        if telling.is_on:
            return
        telling.is_on = True
        try:
            for outlet in self.all:
                try:
                    outlet(event)
                except Exception as error:
                    if is_asynchronous(error):
                        raise
                    self._leave_out(outlet, error)
        finally:
            telling.is_on = False

    def _leave_out(self, outlet: Outlet, error: Exception) -> None:
        self.all = tuple(each for each in self.all if each is not outlet)
        self.alone = self._only = None
        what = "printing" if isinstance(outlet, Printing) else "the handler of followed values"
        complain(f"{what} has failed and is left out: {type(error).__name__}: {error}")


def complain(text: str) -> None:
    """Print one line on stderr."""
    Printing(sys.stderr)(FollowingNote(text))
