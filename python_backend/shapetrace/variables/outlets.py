"""Where events go: printed to a stream, handed to a function, or both.

An outlet that fails is left out from then on, which is said once; the program goes on. What the
program's own functions do on the way, as the ``write`` of its stream, is not followed.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias

from shapetrace.events.followed import FollowedEvent, FollowingNote
from shapetrace.variables import calls
from shapetrace.variables.rendering import Rendering
from shapetrace.views.followed import FollowedOptions
from shapetrace.views.styled import StyledText
from shapetrace.views.terminal import terminal_width, wants_color

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


class Printing:
    """Prints events as a tree, to a stream or to whatever is stdout at that moment."""

    def __init__(self, stream: Any = None, color: str = "auto", width: int | None = None) -> None:
        self.stream = stream
        self.color, self.width = color, width
        self._known: Any = None
        self._rendering = Rendering(FollowedOptions(), False, None)

    def __call__(self, event: FollowedEvent) -> None:
        """Print an event."""
        if self._is_ready():
            write(self._known, self._rendering.text_of(event))

    def show(self, text: StyledText) -> None:
        """Print lines."""
        if self._is_ready():
            write(self._known, self._rendering.lines(text.lines))

    def again(self, key: object, seconds: float | None = None) -> bool:
        """Print lines that were printed before, if they were; a time may follow them."""
        if not self._is_ready():
            return True
        text = self._rendering.known(key)
        if text is None:
            return False
        if seconds is not None:
            text += self._rendering.time(seconds)
        _telling.is_on = True
        try:
            write(self._known, text)
        finally:
            _telling.is_on = False
        return True

    def _is_ready(self) -> bool:
        stream = sys.stdout if self.stream is None else self.stream
        if stream is not self._known:
            self._look_at(stream)
        return stream is not None

    def _look_at(self, stream: Any) -> None:
        self._known = stream
        terminal = stream if hasattr(stream, "isatty") else None
        width = self.width or terminal_width(os.environ, 80)
        color = wants_color(self.color, terminal, os.environ)
        options = FollowedOptions(width, _working_directory())
        self._rendering = Rendering(options, color, getattr(stream, "encoding", None))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Printing) and other.stream is self.stream

    def __hash__(self) -> int:
        return hash((Printing, id(self.stream)))


def write(stream: Any, text: str) -> None:
    """Write lines to a stream all at once, so that those of other threads do not come between."""
    try:
        stream.write(text)
        if calls.process_name is not None:
            # Processes share what stdout goes to; what is kept back would be cut anywhere.
            stream.flush()
    except (AttributeError, OSError, ValueError):
        pass  # None, closed, or nobody reads it: the program can go on without our text.


def _working_directory() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None


TO_STDOUT: Final = Printing()


class _Telling(threading.local):
    """Whether this thread is telling of something just now."""

    is_on = False


_telling = _Telling()


def is_telling() -> bool:
    """Whether what runs is an outlet's doing, which is not followed."""
    return _telling.is_on


class Outlets:
    """Those who are told of what one function does."""

    def __init__(self, outlets: tuple[Outlet, ...]) -> None:
        self.all = outlets
        printing = [outlet for outlet in outlets if isinstance(outlet, Printing)]
        self._idle = [outlet for outlet in outlets if isinstance(outlet, Idle)]
        is_only = len(printing) == 1 and 1 + len(self._idle) == len(outlets)
        self._only = printing[0] if is_only else None

    def printing(self) -> Printing | None:
        """Where there is nothing but printing, that: it needs no event for what it knows."""
        if self._only is None or _telling.is_on:
            return None
        for outlet in self._idle:
            if not outlet.is_idle():
                return None
        return self._only

    def tell(self, event: FollowedEvent) -> None:
        """Tell of an event."""
        if _telling.is_on:
            return
        _telling.is_on = True
        try:
            for outlet in self.all:
                try:
                    outlet(event)
                except Exception as error:
                    self._leave_out(outlet, error)
        finally:
            _telling.is_on = False

    def _leave_out(self, outlet: Outlet, error: Exception) -> None:
        self.all = tuple(each for each in self.all if each is not outlet)
        self._only = None
        what = "printing" if isinstance(outlet, Printing) else "the handler of followed values"
        complain(f"{what} has failed and is left out: {type(error).__name__}: {error}")


def complain(text: str) -> None:
    """Say something on stderr, in one line."""
    Printing(sys.stderr)(FollowingNote(text))
