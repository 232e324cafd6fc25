"""Where events go: printed to a stream, handed to a function, or both.

An outlet that fails is left out from then on, which is said once; the program goes on. What the
program's own functions do on the way, as the ``write`` of its stream, is not followed.
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
"""Is told of each event."""


class TextStream(Protocol):
    """What text is written to."""

    def write(self, text: str, /) -> object:
        """Write a text."""
        ...


class Idle:
    """An outlet that may have nobody to tell."""

    def is_idle(self) -> bool:
        """Whether telling it would do nothing."""
        raise NotImplementedError

    def __call__(self, event: FollowedEvent) -> None:
        """Tell of an event."""
        raise NotImplementedError


class _Known(NamedTuple):
    """What is known of the stream that was printed to last."""

    stream: Any
    is_plain: bool
    """Whether none of the program's code runs where it is written to."""
    rendering: Rendering


class _Terminal(NamedTuple):
    """What a stream has said, which may be the program's code: it is asked once."""

    is_one: bool

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        return self.is_one


class Printing:
    """Prints events as a tree, to a stream or to whatever is stdout at that moment."""

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
        """Print lines that were printed before, if they were; a time may follow them."""
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
            return False  # what it now takes is not known yet
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
        except UnicodeEncodeError:  # it was told to take another encoding since we looked at it
            known = self._look_at(stream)
            try:
                write(stream, text_by(known.rendering))
            except UnicodeEncodeError:
                pass  # a stream that does not say what it takes

    def _look_at(self, stream: Any) -> _Known:
        """What is to be known of a stream: all of it or nothing, as other threads print as well."""
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
    """Write lines to a stream all at once, so that those of other threads do not come between.

    Raises ``UnicodeEncodeError`` where the stream does not take them, and then has taken nothing.
    """
    try:
        stream.write(text)
        if calls.process_name is not None:
            # Processes share what stdout goes to; what is kept back would be cut anywhere.
            stream.flush()
    except UnicodeEncodeError:
        raise
    except (AttributeError, OSError, ValueError) as error:
        if is_asynchronous(error):
            raise
        # None, closed, or nobody reads it: the program can go on without our text.


def _is_plain(stream: Any) -> bool:
    """Whether a stream is one of Python's own, which writes to a file."""
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
    """Whether this thread is telling of something just now."""

    is_on = False


telling: Final = _Telling()
"""What an outlet does is not followed."""


class Outlets:
    """Those who are told of what one function does."""

    def __init__(self, outlets: tuple[Outlet, ...]) -> None:
        self.all = outlets
        printing = [outlet for outlet in outlets if isinstance(outlet, Printing)]
        self._idle = [outlet for outlet in outlets if isinstance(outlet, Idle)]
        is_only = len(printing) == 1 and 1 + len(self._idle) == len(outlets)
        self._only = printing[0] if is_only else None
        self.alone = None if self._idle else self._only
        """Where there is never anything but printing, that: it needs no event for what it knows."""

    def printing(self) -> Printing | None:
        """Where there is nothing but printing now, that."""
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
    """Say something on stderr, in one line."""
    Printing(sys.stderr)(FollowingNote(text))
