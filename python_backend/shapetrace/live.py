"""Calls that are printed as they come, so that whatever ends the program leaves them there."""

from __future__ import annotations

import _thread
from collections.abc import Callable
from typing import TYPE_CHECKING

from shapetrace._asynchronous import is_asynchronous
from shapetrace.views.live import LiveView
from shapetrace.views.styled import StyledText
from shapetrace.views.view_options import ViewOptions

if TYPE_CHECKING:
    from shapetrace.recorder.news import News
    from shapetrace.recorder.session import Recorder


class LiveOutput:
    """Writes the calls of one recording; ``step`` is the recorder's ``on_change``.

    A call is written when the next one begins or the module that it is in returns, on the thread
    that made it. Only what is new costs anything: a repeated call is not written.
    """

    def __init__(
        self,
        write: Callable[[StyledText], object],
        level: str = "torch",
        options: ViewOptions | None = None,
    ) -> None:
        self.trouble: str | None = None
        """Why nothing more is written, if so."""
        self._write = write
        self._view = LiveView(level, options)
        self._news: News | None = None
        self._writing = _thread.allocate_lock()

    def watch(self, recorder: Recorder) -> None:
        """Write what comes to this recording from now on."""
        from shapetrace.recorder.news import News

        self._news = News(recorder)

    def step(self, *, final: bool = False) -> None:
        """Write what has come; calls that have not returned wait, unless this is the end."""
        if self._news is None or self.trouble or not self._writing.acquire(False):
            return  # Another thread is at it, or this one: what is printed to may call torch.
        try:
            text = self._view.text(self._news.take(final))
            if text.lines:
                self._write(text)
        except Exception as error:
            if is_asynchronous(error):
                raise
            # Ours to regret, not the program's to handle.
            self.trouble = f"{type(error).__name__}: {error}"
        finally:
            self._writing.release()
