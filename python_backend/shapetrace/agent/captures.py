"""Capturing values in a debug session: from the model's functions to messages for the server.

Tracers are made when a model is called first: for each outermost module with parameters, as the
recorder tells them from transforms and losses. What they see is summed up on the program's thread
and kept until our own thread asks; the newest of each name stay, for a server that comes anew.
"""

from __future__ import annotations

import itertools
import weakref
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from shapetrace._asynchronous import is_asynchronous
from shapetrace.agent.summaries import summary_of
from shapetrace.transport.captures import (
    MOST_KEPT,
    CapturedName,
    CapturedValue,
    CaptureNews,
    Mode,
)
from shapetrace.transport.messages import write

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


class _Kept:
    """The values of one name."""

    def __init__(self, about: CapturedName) -> None:
        self.about = about
        self.numbers = itertools.count(1)
        self.values: deque[CapturedValue] = deque(maxlen=MOST_KEPT)
        self.is_told = False


class Captures:
    """The captured values of one process."""

    def __init__(self, paths: tuple[str, ...], now: Callable[[], float]) -> None:
        self._paths = paths
        self._now = now
        self._models: list[weakref.ref[Module]] = []
        self._leave: list[Callable[[], None]] = []
        self._kept: dict[tuple[str, str, str], _Kept] = {}
        self._waiting: deque[CapturedValue] = deque(maxlen=MOST_WAITING)
        """Filled by the program's threads, emptied by ours."""
        self._resent: deque[CapturedValue] = deque()
        """What another server was told already."""
        self._misses: dict[str, str] = {}
        """What the first model had to say that has nothing of a path."""
        self._met: set[str] = set()
        """The paths of which some model has something."""
        self._problems: dict[str, str] = {}
        """What else is wrong with a path."""
        self._told_paths = False
        self._told_problems: dict[str, str] | None = None
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
        kept = self._kept.get((model, path, name))
        if kept is None:
            if len(self._kept) >= MOST_NAMES:
                self.noted(path, f"only the first {MOST_NAMES:,} names are captured")
                return
            about = CapturedName(len(self._kept) + 1, name, path, model)
            kept = self._kept[model, path, name] = _Kept(about)
        told = summary_of(value)
        number = next(kept.numbers)
        self._waiting.append(CapturedValue(kept.about.number, number, iteration, mode, *told))

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
        values: list[CapturedValue] = []
        while len(values) < MOST_AT_ONCE:
            # None of a name before the name, and no name twice.
            if self._resent:
                values.append(self._resent.popleft())
                continue
            try:
                value = self._waiting.popleft()
            except IndexError:
                break
            values.append(value)
        names = self._new_names()
        by_number = {kept.about.number: kept for kept in list(self._kept.values())}
        for value in values:
            kept = by_number[value.name]
            if not kept.values or kept.values[-1].ordinal < value.ordinal:
                kept.values.append(value)
        problems = self._problems_now()
        has_news = problems != (self._told_problems or {})
        if self._told_paths and not values and not names and not has_news:
            return None
        news = CaptureNews(
            paths=None if self._told_paths else self._paths,
            problems=problems if has_news else None,
            names=tuple(names),
            values=tuple(values),
        )
        self._told_paths, self._told_problems = True, problems
        return news

    def message(self) -> dict[str, Any] | None:
        """What has not been told yet, or some of it, for the server."""
        news = self.news()
        return None if news is None else write(news)

    def begin_anew(self) -> None:
        """Tell everything once more, as far as it is kept: there is a server that knows nothing."""
        self._told_paths, self._told_problems = False, None
        self._resent.clear()
        for kept in list(self._kept.values()):
            kept.is_told = False
            self._resent.extend(kept.values)

    def end(self) -> None:
        """Have the program run as without us; what was seen can still be told."""
        self._is_over = self._is_settled = True
        while self._leave:
            self._leave.pop()()

    def _new_names(self) -> list[CapturedName]:
        new = [kept for kept in list(self._kept.values()) if not kept.is_told]
        for kept in new:
            kept.is_told = True
        return [kept.about for kept in new]

    def _problems_now(self) -> dict[str, str]:
        """What is known to be wrong by now. Another model may have what the first has not."""
        at = self._last_model_at
        is_settled = self._is_settled or (at is not None and self._now() - at > PATIENCE)
        found = dict(self._problems)
        for path, miss in self._misses.items():
            if path not in self._met and is_settled:
                found.setdefault(path, miss)
        return found
