"""The output of the command line: the trace on stdout, messages about it on stderr."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from shapetrace._asynchronous import is_asynchronous
from shapetrace._errors import TraceFileError

if TYPE_CHECKING:
    from shapetrace.comparing.comparison import Comparison
    from shapetrace.events.captured import CapturedFile
    from shapetrace.events.model import Trace
    from shapetrace.views import StyledText, ViewOptions

VIEW_NAMES = ("tree", "listing", "table", "markdown", "json")
"""The names of the views; written out here as nothing of them is loaded before the program runs."""

COLOR_CHOICES = ("auto", "always", "never")


@dataclass(frozen=True, slots=True)
class ViewChoice:
    """Which view the user asked for, and how it shall look."""

    view: str = "tree"
    """One of ``VIEW_NAMES``, or ``none``."""
    color: str = "auto"
    width: int | None = None
    """None for as wide as the terminal is."""
    verbose: bool = False


class Terminal:
    """The standard streams as they were at first, whatever the program puts in their place."""

    def __init__(self, stdout: TextIO | None = None, stderr: TextIO | None = None) -> None:
        self.stdout = stdout or sys.stdout
        self.stderr = stderr or sys.stderr
        self._base = _working_directory()

    def note(self, text: str) -> None:
        """Say one line about the trace, or about what is wrong."""
        try:
            self.stderr.write(f"shapetrace: {text}\n")
            self.stderr.flush()
        except (AttributeError, OSError, ValueError) as error:
            if is_asynchronous(error):
                raise
            # No stderr, or closed: there is no reader.

    def show(self, trace: Trace, choice: ViewChoice) -> None:
        """Print a view of a trace to stdout, after everything that has been printed before."""
        if choice.view == "none":
            return
        stream = self._usable_stdout()
        if stream is None:
            self.note("the trace is not shown: stdout is closed. Write it to a file with -o")
            return
        _write(stream, _rendered(trace, choice, stream, self._base))

    def options(self, choice: ViewChoice) -> ViewOptions:
        """The options for the layout of a view."""
        from shapetrace import views

        width = choice.width or views.terminal_width(os.environ)
        return views.ViewOptions(width=width, base=self._base, verbose=choice.verbose)

    def show_lines(self, text: StyledText, choice: ViewChoice) -> None:
        """Print some lines to stdout, after everything that has been printed before."""
        from shapetrace import views
        from shapetrace.views.terminal_text import to_text

        stream = self._usable_stdout()
        if stream is not None:
            color = views.wants_color(choice.color, stream, os.environ)
            _write(stream, to_text(text, color=color, encoding=stream.encoding))

    def anew(self) -> Terminal:
        """A terminal with new, empty buffers: the old ones may be in use."""
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (AttributeError, OSError, RuntimeError, ValueError):
                pass
        other = Terminal(_opened_anew(self.stdout), _opened_anew(self.stderr))
        other._base = self._base
        return other

    def show_captured(self, file: CapturedFile, choice: ViewChoice) -> None:
        """Print what is in a file of captured values."""
        stream = self._usable_stdout()
        if stream is not None:
            _write(stream, _rendered_captured(file, choice, stream))

    def show_differences(
        self, comparison: Comparison, names: tuple[str, str], choice: ViewChoice
    ) -> None:
        """Print what differs between two runs."""
        stream = self._usable_stdout()
        if stream is None:
            self.note("nothing is shown: stdout is closed. Write it to a file with -o")
        else:
            _write(stream, self.differences(comparison, names, choice, stream))

    def differences(
        self,
        comparison: Comparison,
        names: tuple[str, str],
        choice: ViewChoice,
        stream: TextIO | None,
    ) -> str:
        """The differences between two runs as text for a stream; None for a file."""
        from shapetrace import views
        from shapetrace.views.comparison_registry import render_comparison

        width = choice.width or views.terminal_width(os.environ)
        options = views.ViewOptions(width=width, base=self._base, verbose=choice.verbose)
        color = views.wants_color(choice.color, stream, os.environ)
        encoding = "utf-8" if stream is None else stream.encoding
        return render_comparison(
            comparison, choice.view, names, options, color=color, encoding=encoding
        )

    def _usable_stdout(self) -> TextIO | None:
        """The stream that was stdout at first, or what the program has wrapped it in."""
        for stream in (self.stdout, sys.stdout):
            try:
                stream.flush()
            except (AttributeError, ValueError):
                # There is none, or it is closed or detached.
                continue
            except OSError as error:
                if is_asynchronous(error):
                    raise
                # The reader is gone, which writing will find too.
            return stream
        return None


def _opened_anew(stream: TextIO) -> TextIO:
    try:
        return open(stream.fileno(), "w", encoding=stream.encoding, errors="replace", closefd=False)
    except (AttributeError, OSError, ValueError):
        return stream


def _rendered(trace: Trace, choice: ViewChoice, stream: TextIO, base: str | None) -> str:
    from shapetrace import views

    width = choice.width or views.terminal_width(os.environ)
    options = views.ViewOptions(width=width, base=base, verbose=choice.verbose)
    color = views.wants_color(choice.color, stream, os.environ)
    return views.render(trace, choice.view, options, color=color, encoding=stream.encoding)


def _rendered_captured(file: CapturedFile, choice: ViewChoice, stream: TextIO) -> str:
    from shapetrace import views
    from shapetrace.views.captured import render_captured
    from shapetrace.views.terminal_text import to_text

    width = choice.width or views.terminal_width(os.environ)
    text = render_captured(file, views.ViewOptions(width=width, verbose=choice.verbose))
    color = views.wants_color(choice.color, stream, os.environ)
    return to_text(text, color=color, encoding=stream.encoding)


def _write(stream: TextIO, text: str) -> None:
    for waiting in (sys.stdout, sys.stderr):
        try:
            waiting.flush()
        except (AttributeError, OSError, RuntimeError, ValueError) as error:
            if is_asynchronous(error):
                raise
            # RuntimeError: a signal has come while this very thread was writing to it
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        if is_asynchronous(error):
            raise
        # What is left in the buffer must go somewhere, or the interpreter complains when it
        # flushes it at the end.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        if isinstance(error, BrokenPipeError):
            return  # the reader has seen enough
        reason = os.strerror(error.errno) if error.errno else error
        raise TraceFileError(
            f"cannot write to stdout: {reason}; write it to a file with -o"
        ) from None


def _working_directory() -> str | None:
    try:
        return os.getcwd()
    except OSError as error:
        if is_asynchronous(error):
            raise
        return None
