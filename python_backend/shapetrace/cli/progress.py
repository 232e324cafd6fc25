"""The line on stderr that says how far a long recording has come.

shapetrace: recording: 3 forward passes, 12,345 ops, 14 s
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO

from shapetrace.cli.notes import completion_text, progress_text

QUIET_SECONDS = 2.0
"""Seconds of recording before progress is shown: shorter recordings need none."""

POLL_SECONDS = 1.0

LOG_SECONDS = 10.0
"""Between lines where stderr is a file or a pipe; on a terminal one line is written over."""


class Progress:
    """Says where a recording is, seldom, and once that it is over while the program goes on."""

    def __init__(
        self,
        stream: TextIO | None,
        counters: Callable[[], tuple[int, int]],
        is_complete: Callable[[], bool],
        file: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream
        self._counters = counters
        self._is_complete = is_complete
        self._file = file
        self._clock = clock
        self._started = clock()
        self._completed_at: float | None = None
        self._next_line = self._started + QUIET_SECONDS
        self._is_terminal = _is_terminal(stream)
        self._shown = ""

    def step(self) -> float | None:
        """Say what there is to say; returns the seconds until the next call, None for never."""
        now = self._clock()
        if self._is_complete():
            return self._step_after(now)
        ops, passes = self._counters()
        if not ops and not self._shown:
            # The program is still loading its data; there is no recording to speak of.
            self._started = now
            self._next_line = now + QUIET_SECONDS
        if now >= self._next_line:
            self._show(progress_text(ops, passes, now - self._started))
            self._next_line = now + (POLL_SECONDS if self._is_terminal else LOG_SECONDS)
        return POLL_SECONDS

    def clear(self) -> None:
        """Take the line off the terminal."""
        if self._shown:
            self._write("\r" + " " * len(self._shown) + "\r")
        self._shown = ""

    def _step_after(self, now: float) -> float | None:
        if self._completed_at is None:
            self._completed_at = now
            self.clear()
        if now < self._completed_at + QUIET_SECONDS:
            return POLL_SECONDS
        self._write(f"shapetrace: {completion_text(*self._counters(), self._file)}\n")
        return None

    def _show(self, text: str) -> None:
        if not self._is_terminal:
            self._write(f"shapetrace: {text}\n")
            return
        line = f"shapetrace: {text}"
        # Padded rather than cleared by a code: not every terminal on Windows knows those.
        self._write("\r" + line.ljust(len(self._shown)))
        self._shown = line

    def _write(self, text: str) -> None:
        if self._stream is None:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            # Gone or closed: there is no reader.
            self._stream = None


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False
