"""Asking the editor to ask again: at once, but not too often."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Throttle:
    """Calls a function for the first of many wishes at once, and once more for all that follow.

    Wishes come in the event loop. Between two calls lies at least the interval. The first may have
    to wait for a moment as well, for what comes soon after it.
    """

    def __init__(self, call: Callable[[], None], interval: float, moment: float = 0.0) -> None:
        self._call = call
        self._interval = interval
        self._moment = moment
        self._last = float("-inf")
        self._waiting: asyncio.TimerHandle | None = None

    def wish(self) -> None:
        """Have the function called soon."""
        if self._waiting is not None:
            return
        loop = asyncio.get_running_loop()
        delay = max(self._last + self._interval - loop.time(), self._moment)
        # Even a call at once waits for the turn to end: what comes in the same turn belongs to it.
        self._waiting = loop.call_later(delay, self._fire)

    def cancel(self) -> None:
        """Forget a wish that has not been granted yet."""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _fire(self) -> None:
        self._waiting = None
        self._last = asyncio.get_running_loop().time()
        self._call()
