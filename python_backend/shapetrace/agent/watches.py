"""Watching variables in a debug session: from the program's functions to messages for the server.

What listeners hear is kept until our own thread asks. The first and the last changes of each name
stay, for a server that comes anew.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Iterable
from types import CodeType
from typing import TYPE_CHECKING, Final

from shapetrace._errors import ShapetraceError
from shapetrace._exception_table import leaving_surely
from shapetrace.agent.debugger import debugger_folders
from shapetrace.agent.feeds import Feed
from shapetrace.agent.hiding import hide_code, unseen
from shapetrace.events.followed import (
    NEW,
    CallBegan,
    CallEnded,
    FollowedEvent,
    VariableChanged,
)
from shapetrace.events.source_text import source_row
from shapetrace.events.update import Source
from shapetrace.process.forks import undivided
from shapetrace.transport.requested import (
    WATCHED,
    RequestedName,
    RunningCall,
    WatchedChange,
    WatchNews,
)

if TYPE_CHECKING:
    from shapetrace.instrument.interface import Listener
    from shapetrace.watch.loading import Loading
    from shapetrace.watch.unseen_names import Place
    from shapetrace.watch.wanted import Wanted
    from shapetrace.watch.watched_functions import Watching

MOST_WAITING: Final = 20_000
"""Changes that wait to be told, of all names; the oldest are lost then, and counted."""
MOST_AT_ONCE: Final = 1_000
"""Changes in one message."""
MOST_RUNNING: Final = 200
"""Calls that are told of as running."""


class Watches:
    """The watched variables of one process, and of those that are forked from it."""

    def __init__(self, names: tuple[str, ...], began_at: float | None) -> None:
        self._since = began_at or time.time()
        self._first_names: Final = names
        self._names: list[str] = []
        self._watched: dict[str, Wanted] = {}
        """What is watched now, as the user wrote it."""
        self._watching: Watching | None = None
        self._loading: Loading | None = None
        self._running: dict[int, RunningCall] = {}
        self._feed: Feed[WatchedChange] = Feed(
            MOST_WAITING, MOST_AT_ONCE, WATCHED, requests=(), problems={}, running=()
        )
        self._refused: dict[str, str] = {}
        """Names that are none, and why."""
        self._told_files: set[str] = set()
        self._is_over = self._is_finished = False
        self._wake: Callable[[], None] | None = None

    @property
    def has_any(self) -> bool:
        """Whether anything is watched, or was."""
        return bool(self._names)

    def begin(self, wake: Callable[[], None]) -> None:
        """Watch what was asked for from the beginning on; ``wake`` is called at the first change.

        In a forked process all that the other one watched is watched already.
        """
        self._wake = wake
        if self._first_names and not self._names:
            self.set(self._first_names)

    def set(self, names: Iterable[str]) -> None:
        """Watch these from now on, and no others: in functions from their next call on."""
        if self._is_over:
            return
        from shapetrace.watch.wanted import wanted_of

        texts = tuple(dict.fromkeys(names))
        for text in [each for each in self._watched if each not in texts]:
            dropped = self._watched.pop(text)
            if self._watching is not None and dropped not in self._watched.values():
                self._watching.drop(dropped)
        new: list[Wanted] = []
        for text in texts:
            if text in self._watched:
                continue
            try:
                wanted = wanted_of(text)
            except ShapetraceError as error:
                self._refused[text] = str(error)
            else:
                self._watched[text] = wanted
                new.append(wanted)
            if text not in self._names:
                self._feed.names.append(RequestedName(len(self._names), text, text))
                self._names.append(text)
        if new:
            self._begin_watching().add(new)
            hide()

    def _begin_watching(self) -> Watching:
        if self._watching is None:
            from shapetrace.watch.loading import Loading
            from shapetrace.watch.territory import Territory
            from shapetrace.watch.watched_functions import Watching

            territory = Territory(but=debugger_folders())
            self._watching = Watching((), territory, self._listener, apart=True)
            runners = filter(None, [sys.modules.get("_pydevd_bundle.pydevd_runpy")])
            self._loading = Loading(unseen(self._prepared), runners)
            self._loading.begin()
        return self._watching

    def _prepared(self, code: CodeType, module: str, text: Callable[[], str | None]) -> CodeType:
        watching = self._watching
        prepared = code if watching is None else watching.prepared(code, module, text)
        if prepared is not code:
            hide()
        return prepared

    def _listener(self, place: Place, code: CodeType, wanted: tuple[Wanted, ...]) -> Listener:
        from shapetrace.watch.listening import listener_for

        (one,) = wanted
        text = next(text for text, each in self._watched.items() if each == one)
        name = self._names.index(text)
        # Of ours alone: a handler of the program's own is code of the program's.
        return listener_for(place, code, wanted, _Outlet(self, name), unseen)

    # On the program's threads

    def began(self, event: CallBegan) -> None:
        """A followed call has begun."""
        if len(self._running) < MOST_RUNNING:
            call = RunningCall(event.call, event.function, event.file, event.line)
            self._running[event.call] = call

    def ended(self, event: CallEnded) -> None:
        """A followed call is over."""
        self._running.pop(event.call, None)

    def changed(self, name: int, event: VariableChanged, function: str, call: int) -> None:
        """A watched variable has changed; ``call`` counts the calls of the function, from 1."""
        if not self._is_over:
            ordinal = self._feed.next_ordinal(name)
            self._feed.add(WatchedChange(name, ordinal, function, call, event))
            wake, self._wake = self._wake, None
            if wake is not None:
                wake()

    # On the thread of ours

    def news(self) -> WatchNews | None:
        """What has not been told yet, or some of it; None where that is nothing."""
        if not self._names:
            return None
        news = self._feed.news(self._now)
        if not news:
            return None
        files = dict.fromkeys(each.event.file for each in news["items"])
        files.update(dict.fromkeys(each.file for each in news.get("running", ())))
        sources = [file for file in files if file not in self._told_files]
        self._told_files.update(sources)
        return WatchNews(
            **news, sources=tuple(Source(*source_row(file, self._since)) for file in sources)
        )

    def _now(self) -> dict[str, object]:
        return {
            "requests": tuple(self._names),
            "problems": self._problems_now(),
            "running": tuple(self._running.values()),
        }

    def begin_anew(self) -> None:
        """Tell everything once more, as far as it is kept: there is a server that knows nothing."""
        self._told_files = set()
        self._feed.begin_anew()

    @leaving_surely
    def watch(self, names: tuple[str, ...]) -> None:
        """Do as the server says, which has been told by the user."""
        # A fork in the middle of it would leave locks in the child that are never released.
        with undivided():
            self.set(names)

    def finish(self) -> None:
        """The program is over: what has brought nothing will bring nothing."""
        self._is_finished = True

    def end(self) -> None:
        """Have the program run as without us; what was seen can still be told."""
        self._is_over = True
        if self._watching is not None:
            for wanted in self._watching.wanted:
                self._watching.drop(wanted)
        if self._loading is not None:
            self._loading.end()

    def after_fork_in_child(self) -> Watches:
        """Itself, in a process that was just forked, of which nothing has been told."""
        self._told_files = set()
        self._feed.forget()
        return self

    def _problems_now(self) -> dict[str, str]:
        found = dict(self._refused)
        watching = self._watching
        if watching is None:
            return found
        for line in dict(watching.problems):
            found.setdefault("", line)
        if self._is_finished:
            for text, wanted in dict(self._watched).items():
                why = watching.missing(wanted)
                if why is not None:
                    found[text] = why
        return found


class _Outlet:
    """What one listener tells."""

    def __init__(self, watches: Watches, name: int) -> None:
        self._watches: Final = watches
        self._name: Final = name
        self._calls: dict[int, tuple[str, int]] = {}
        """The function of each call that runs, and how many calls of it there were by then."""
        self._numbers: itertools.count[int] = itertools.count(1)

    def __call__(self, event: FollowedEvent) -> None:
        match event:
            case CallBegan():
                self._calls[event.call] = (event.function, next(self._numbers))
                self._watches.began(event)
                self._tell_given(event)
            case VariableChanged():
                self._watches.changed(self._name, event, *self._calls.get(event.call, ("", 0)))
            case CallEnded():
                self._calls.pop(event.call, None)
                self._watches.ended(event)

    def _tell_given(self, began: CallBegan) -> None:
        """What a variable has when its call begins is its first change."""
        for argument in began.arguments:
            if argument.followed:
                event = VariableChanged(
                    call=began.call,
                    depth=began.depth,
                    name=argument.name,
                    file=began.file,
                    line=began.line,
                    before=None,
                    after=argument.value,
                    differs=(NEW,),
                    thread=began.thread,
                )
                self._watches.changed(self._name, event, *self._calls[began.call])


def hide() -> None:
    """Keep the debugger out of the hooks, and of what lets go of a call that is over."""
    from shapetrace.agent.hook_hiding import hide_hooks
    from shapetrace.instrument.hidden_twins import hidden_twin
    from shapetrace.variables.variable_listener import CallState

    hide_hooks()
    hide_code(hidden_twin(CallState).__del__.__code__)
