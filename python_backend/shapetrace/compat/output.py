"""Printing as the tools before did it: to whatever is stdout at that moment."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from shapetrace._asynchronous import is_asynchronous
from shapetrace.events.model import Trace
from shapetrace.live import LiveOutput
from shapetrace.views import StyledText, ViewOptions, terminal_width, wants_color
from shapetrace.views.registry import VIEWS
from shapetrace.views.styled import printable
from shapetrace.views.terminal_text import to_text

RUNNING_ALREADY = "another recording is running; stop it first, there can be only one"
"""Why a second recording is not begun."""


def view_of(trace: Trace, view: str, *, verbose: bool, width: int | None = None) -> StyledText:
    """A view for people who sit in front of it: files named from where they are."""
    columns = terminal_width(os.environ) if width is None else width
    options = ViewOptions(width=columns, base=_working_directory(), verbose=verbose)
    return VIEWS[view](trace, options)


def joined(texts: Iterable[StyledText]) -> StyledText:
    """Several texts as one, with a blank line between them."""
    lines = [line for text in texts for line in ((), *text.lines)]
    return StyledText(tuple(lines[1:]))


def show(text: StyledText, *, may_color: bool = True) -> None:
    """Print to stdout, in colour where it is a terminal and NO_COLOR is not set."""
    encoding = getattr(sys.stdout, "encoding", None)
    write(to_text(text, color=colored(may_color), encoding=encoding))


def colored(may_color: bool) -> bool:
    """Return whether what is printed now is in colour."""
    return wants_color("auto" if may_color else "never", sys.stdout, os.environ)


def write(text: str) -> None:
    """Print text to stdout."""
    stream = sys.stdout
    try:
        stream.write(text)
        stream.flush()
    except (AttributeError, OSError, ValueError) as error:
        if is_asynchronous(error):
            raise
        # None, closed, or without a reader: the program can go on without our text.
    except RuntimeError as error:
        if is_asynchronous(error):
            raise
        # A signal that ends the program has come while this very thread was writing to it.
        number, encoding = stream.fileno(), stream.encoding
        with open(number, "w", encoding=encoding, errors="replace", closefd=False) as anew:
            anew.write(text)


def live_output(live: bool | None, level: str, *, may_color: bool = True) -> LiveOutput | None:
    """Prints calls as they come, where that is asked for; None to print them at the end.

    The default is to print at once on a terminal, where a user reads it.
    """
    if live is None:
        try:
            live = sys.stdout.isatty()
        except (AttributeError, ValueError):
            live = False  # None, or closed
    if not live:
        return None
    options = ViewOptions(width=terminal_width(os.environ), base=_working_directory())
    return LiveOutput(lambda text: show(text, may_color=may_color), level, options)


def warn(message: str) -> None:
    """Print one line that the user should notice, in yellow."""
    show(StyledText((((printable(message), "count"),),)))


def _working_directory() -> str | None:
    try:
        return os.getcwd()
    except OSError as error:
        if is_asynchronous(error):
            raise
        return None
