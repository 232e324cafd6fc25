"""What processes say, brought to the store and told to the editor."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import get_args

from shapetrace.events.rows import RowReader
from shapetrace.server.journal import Replayed
from shapetrace.server.listener import ProcessKey
from shapetrace.server.messages.captures import CaptureProblem
from shapetrace.server.messages.sessions import SessionState, Status
from shapetrace.server.messages.watches import WatchProblem
from shapetrace.server.store import TraceStore
from shapetrace.transport.captures import CaptureNews, read_captures
from shapetrace.transport.framing import Message
from shapetrace.transport.handshake import Hello
from shapetrace.transport.watches import read_watches

_TURN = 0.005
"""Seconds of reading old messages after which the editor has its turn."""

_STATES: frozenset[SessionState] = frozenset(get_args(SessionState))

_FINAL = frozenset({"complete", "noForward", "unsupported", "failed", "gone"})
"""States after which a process is not recorded any more."""

_REFUSALS_LOGGED = 20
_LARGEST = 2**53
"""What the editor can still count."""

_log = logging.getLogger(__name__)


class Sessions:
    """Reads the messages of processes. Called in the event loop by the listener."""

    def __init__(
        self,
        store: TraceStore,
        tell: Callable[[Status], None],
        tell_problem: Callable[[CaptureProblem], None],
        tell_watch_problem: Callable[[WatchProblem], None],
    ) -> None:
        self._store = store
        self._tell = tell
        self._tell_problem = tell_problem
        self._tell_watch_problem = tell_watch_problem
        self._problems: set[CaptureProblem | WatchProblem] = set()
        """What the user has been told of: several processes may meet with the same."""
        self._readers: dict[ProcessKey, RowReader] = {}
        self._statuses: dict[ProcessKey, Status] = {}
        self._refused: dict[ProcessKey, int] = {}
        """How many rows of a process were not as a recorder sends them."""
        self._heard: set[ProcessKey] = set()
        """Processes that have connected to this server."""

    def hello(self, process: ProcessKey, hello: Hello) -> None:
        """A process is there, and begins from the beginning."""
        self._heard.add(process)
        self._begin(process, hello)
        status = Status(
            process.session,
            process.pid,
            "connected",
            python=hello.process.python,
            rank=hello.process.rank,
        )
        self._show(process, status)

    def message(self, process: ProcessKey, message: Message) -> None:
        """A process has said something."""
        kind = message.get("type")
        if kind == "rows":
            self._read_rows(process, message)
        elif kind == "captures":
            self._tell_problems(process, self._read_captures(process, message))
        elif kind == "watches":
            self._read_watches(process, message)
        elif kind == "status" and process in self._statuses:
            self._show(process, _status(self._statuses[process], message))
        elif kind == "bye":
            _log.info("%s ends: %s", process, message.get("reason"))

    def gone(self, process: ProcessKey, reason: str) -> None:
        """Nothing more comes from a process."""
        self._store.close_process(process)
        self._readers.pop(process, None)
        status = self._statuses.pop(process, None)
        _log.info("%s is gone: %s", process, reason)
        if status is not None:
            # That is how all connections end.
            message = "" if reason == "ended" else reason
            self._tell(replace(status, state="gone", message=message))
        if not any(other.session == process.session for other in self._statuses):
            self._tell_watch_problems(process.session)

    def running(self) -> list[ProcessKey]:
        """The processes that are connected."""
        return list(self._statuses)

    def recorded(self) -> list[ProcessKey]:
        """The processes that are recorded, or will be."""
        return [key for key, status in self._statuses.items() if status.state not in _FINAL]

    async def replay(self, recorded: Iterable[Replayed]) -> None:
        """Hear once more what processes said before the server was restarted, bit by bit."""
        loop = asyncio.get_running_loop()
        turn_ends = loop.time() + _TURN
        for each in recorded:
            process = ProcessKey(each.session.session, each.hello.process.pid)
            if process in self._heard:
                continue
            self._store.open_session(process.session, is_former=True)
            self._begin(process, each.hello)
            for message in each.messages:
                if message.get("type") == "rows":
                    self._read_rows(process, message)
                elif message.get("type") == "captures":
                    self._read_captures(process, message)
                elif message.get("type") == "watches":
                    self._read_watches(process, message)
                if loop.time() >= turn_ends:
                    await asyncio.sleep(0)
                    turn_ends = loop.time() + _TURN
                    if process in self._heard:
                        break
            else:
                self._store.close_process(process)
                del self._readers[process]

    def _begin(self, process: ProcessKey, hello: Hello) -> None:
        self._readers[process] = RowReader()
        self._store.open_process(process.session, process, hello.process)

    def _read_rows(self, process: ProcessKey, message: Message) -> None:
        reader = self._readers.get(process)
        if reader is None:
            return
        update, refused = reader.read_valid(message)
        self._note_refused(process, refused)
        self._store.apply(process, update)

    def _read_captures(self, process: ProcessKey, message: Message) -> CaptureNews:
        news, refused = read_captures(message)
        self._note_refused(process, refused)
        self._store.capture(process, news)
        return news

    def _read_watches(self, process: ProcessKey, message: Message) -> None:
        news, refused = read_watches(message)
        self._note_refused(process, refused)
        self._store.watch(process, news)

    def _note_refused(self, process: ProcessKey, refused: Iterable[str]) -> None:
        """Say what was wrong with rows that are not shown: others go on being read."""
        for text in refused:
            number = self._refused[process] = self._refused.get(process, 0) + 1
            if number <= _REFUSALS_LOGGED:
                _log.error("%s: refused: %.500s", process, text)
            elif number % 1000 == 0:
                _log.error("%s: %d rows have been refused", process, number)

    def _tell_problems(self, process: ProcessKey, news: CaptureNews) -> None:
        for path, text in (news.problems or {}).items():
            problem = CaptureProblem(process.session, path, text)
            if problem not in self._problems:
                self._problems.add(problem)
                self._tell_problem(problem)

    def _tell_watch_problems(self, session: str) -> None:
        """All programs of a session are over: what none of them had is told."""
        processes = [
            each.watched for each in self._store.processes(session).values() if each.watched.names
        ]
        for name in dict.fromkeys(name for each in processes for name in each.problems):
            # The workers of a loader may have what the program itself has not.
            if name and self._store.is_watched_anywhere(session, name):
                continue
            text = next(each.problems[name] for each in processes if name in each.problems)
            problem = WatchProblem(session, name, text)
            if problem not in self._problems:
                self._problems.add(problem)
                self._tell_watch_problem(problem)

    def _show(self, process: ProcessKey, status: Status) -> None:
        self._statuses[process] = status
        self._tell(status)


def _status(former: Status, message: Message) -> Status:
    """The status that a process sends; whatever it leaves out or gets wrong stays as it was."""

    def text(key: str, default: str) -> str:
        value = message.get(key)
        return value if isinstance(value, str) else default

    def number(key: str, default: int) -> int:
        value = message.get(key)
        # By type: true is a number to Python.
        return value if type(value) is int and 0 <= value < _LARGEST else default

    state = message.get("state")
    rank = message.get("rank")
    torch = message.get("torch")
    return replace(
        former,
        state=state if state in _STATES else former.state,
        message=text("message", ""),
        torch=torch if isinstance(torch, str) else former.torch,
        passes=number("passes", former.passes),
        calls=number("calls", former.calls),
        dropped=number("dropped", former.dropped),
        rank=rank if type(rank) is int and 0 <= rank < _LARGEST else former.rank,
    )
