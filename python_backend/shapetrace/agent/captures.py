"""Capturing values in a debug session: from the model's functions to messages for the server.

Tracers are made when a model is called first: for each outermost module with parameters, as the
recorder tells them from transforms and losses. What they see is summed up on the program's thread
and kept until our own thread asks; the newest of each name stay, for a server that comes anew.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from shapetrace._asynchronous import is_asynchronous
from shapetrace.agent.feeds import Feed
from shapetrace.agent.summaries import summary_of
from shapetrace.transport.requested import (
    CAPTURED,
    CapturedValue,
    CaptureNews,
    Mode,
    RequestedName,
)

if TYPE_CHECKING:
    from torch.nn import Module


MOST_MODELS: Final = 8
"""Models that are traced. A program that makes them anew for each batch has many."""
MOST_NAMES: Final = 1_000
MOST_WAITING: Final = 20_000
"""Values that wait to be told, of all names; the oldest are lost then, and counted all the same."""
MOST_AT_ONCE: Final = 2_000
"""Values in one message."""
PATIENCE: Final = 1.0
"""Seconds in which another model may be called that has what the first has not."""


class Captures:
    """The captured values of one process."""

    def __init__(self, paths: tuple[str, ...], now: Callable[[], float]) -> None:
        self._paths = paths
        self._now = now
        self._models: list[weakref.ref[Module]] = []
        self._leave: list[Callable[[], None]] = []
        self._names: dict[tuple[str, str, str], RequestedName] = {}
        self._feed: Feed[CapturedValue] = Feed(MOST_WAITING, MOST_AT_ONCE, CAPTURED, problems={})
        self._misses: dict[str, str] = {}
        """What the first model had to say that has nothing of a path."""
        self._met: set[str] = set()
        """The paths of which some model has something."""
        self._problems: dict[str, str] = {}
        """What else is wrong with a path."""
        self._last_model_at: float | None = None
        self._is_settled = False
        """Whether it is known which paths none of the models has."""
        self._is_over = False

    # On the program's threads

    def before_call(self, module: Module) -> None:
        """An outermost module with parameters is about to be called."""
        if self._is_over or not self._paths:
            return
        if any(known() is module for known in list(self._models)):
            self._is_settled = True
            return
        if len(self._models) >= MOST_MODELS:
            return
        self._models.append(weakref.ref(module))
        self._last_model_at = self._now()
        self._is_settled = False
        from shapetrace.agent.capturing import trace

        try:
            self._leave.append(trace(module, self._paths, self))
        except Exception as error:
            if is_asynchronous(error):
                raise
            self.noted("", f"{type(error).__name__}: {error}")

    def captured(
        self, model: str, path: str, name: str, value: Any, iteration: int, mode: Mode
    ) -> None:
        """A value was captured."""
        if self._is_over:
            return
        known = self._names.get((model, path, name))
        if known is None:
            if len(self._names) >= MOST_NAMES:
                self.noted(path, f"only the first {MOST_NAMES:,} names are captured")
                return
            known = RequestedName(len(self._names) + 1, name, path, model)
            self._names[model, path, name] = known
            self._feed.names.append(known)
        summary = summary_of(value)
        ordinal = self._feed.next_ordinal(known.number)
        self._feed.add(CapturedValue(known.number, ordinal, iteration, mode, *summary))

    def missed(self, path: str, reason: str) -> None:
        """A model has nothing that a path could mean."""
        self._misses.setdefault(path, reason)

    def met(self, path: str) -> None:
        """A model has something that a path means."""
        self._met.add(path)

    def noted(self, path: str, reason: str) -> None:
        """Something is not captured."""
        self._problems.setdefault(path, reason)

    # On the thread of ours

    def news(self) -> CaptureNews | None:
        """What has not been told yet, or some of it; None where that is nothing."""
        if not self._paths:
            return None
        news = self._feed.news(lambda: {"requests": self._paths, "problems": self._problems_now()})
        return CaptureNews(**news) if news else None

    def begin_anew(self) -> None:
        """Tell everything once more, as far as it is kept: there is a server that knows nothing."""
        self._feed.begin_anew()

    def end(self) -> None:
        """Have the program run as without us; what was seen can still be told."""
        self._is_over = self._is_settled = True
        while self._leave:
            self._leave.pop()()

    def _problems_now(self) -> dict[str, str]:
        """What is known to be wrong by now. Another model may have what the first has not."""
        at = self._last_model_at
        is_settled = self._is_settled or (at is not None and self._now() - at > PATIENCE)
        found = dict(self._problems)
        for path, miss in self._misses.items():
            if path not in self._met and is_settled:
                found.setdefault(path, miss)
        return found
