"""Asking the editor to ask again: at once, not too often, and so that it hears."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Throttle:
    """Calls a function at once for the first of many requests, and once more for all that follow.

    Wishes come in the event loop. Between two calls lies at least the interval, but for those that
    are to be at once. The first may have to wait for a moment as well, for what comes soon after.
    """

    def __init__(self, call: Callable[[], None], interval: float, moment: float = 0.0) -> None:
        self._call = call
        self._interval = interval
        self._moment = moment
        self._last = float("-inf")
        self._waiting: asyncio.TimerHandle | None = None

    def request(self, at_once: bool = False) -> None:
        """Have the function called soon, or at once if the user is waiting."""
        if at_once:
            self.cancel()
        elif self._waiting is not None:
            return
        loop = asyncio.get_running_loop()
        usual = max(self._last + self._interval - loop.time(), self._moment)
        delay = 0.0 if at_once else usual
        # Even a call at once waits for the turn to end: what comes in the same turn belongs to it.
        self._waiting = loop.call_later(delay, self._fire)

    def cancel(self) -> None:
        """Forget a request that has not been granted yet."""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _fire(self) -> None:
        self._waiting = None
        self._last = asyncio.get_running_loop().time()
        self._call()


class Reminder:
    """Calls a function, and once more where the first call may not have been heard.

    While VS Code 1.139 waits for the hints that it asked for, it does not listen whether these have
    become others. What it was answered just before would be shown for as long as nothing else
    happens.
    """

    def __init__(self, call: Callable[[], None], window: float, pause: float) -> None:
        self._call = call
        self._window = window
        self._pause = pause
        self._answered = float("-inf")
        self._waiting: asyncio.TimerHandle | None = None

    def answered(self) -> None:
        """The editor was answered, and may not have taken that in yet."""
        self._answered = asyncio.get_running_loop().time()

    def call(self) -> None:
        """Call the function now, and once more later if it was answered a short while ago."""
        self.cancel()
        loop = asyncio.get_running_loop()
        if loop.time() - self._answered < self._window:
            self._waiting = loop.call_later(self._pause, self._remind)
        self._call()

    def cancel(self) -> None:
        """Forget to call once more."""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _remind(self) -> None:
        self._waiting = None
        self._call()
