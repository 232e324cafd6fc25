"""The messages of processes: brought to the store and reported to the editor."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from typing import get_args

from shapetrace.events.rows import RowReader
from shapetrace.server.listener import ProcessKey
from shapetrace.server.message_journal import Replayed
from shapetrace.server.messages.requested import RequestProblem
from shapetrace.server.messages.sessions import SessionState, Status
from shapetrace.server.store import TraceStore
from shapetrace.transport.framing import Message
from shapetrace.transport.messages import (
    Bye,
    FromAgent,
    Hello,
    NumberedStop,
    ProcessStatus,
    Rows,
    read_from_agent,
)
from shapetrace.transport.requested import CaptureNews, WatchNews

_TURN = 0.005
"""Seconds of reading old messages after which the editor has its turn."""

_STATES: frozenset[SessionState] = frozenset(get_args(SessionState))

_FINAL = frozenset({"complete", "noForward", "unsupported", "failed", "gone"})
"""States after which a process is not recorded any more."""

_REFUSALS_LOGGED = 20

_log = logging.getLogger(__name__)


class Sessions:
    """Reads the messages of processes. Called in the event loop by the listener."""

    def __init__(
        self,
        store: TraceStore,
        tell: Callable[[Status], None],
        tell_problem: Callable[[RequestProblem], None],
        tell_watch_problem: Callable[[RequestProblem], None],
    ) -> None:
        self._store = store
        self._tell = tell
        self._tell_problem = tell_problem
        self._tell_watch_problem = tell_watch_problem
        self._problems: set[RequestProblem] = set()
        """Messages that the user has seen: several processes may report one problem."""
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
        said = self._take(process, message)
        if isinstance(said, CaptureNews):
            self._tell_problems(process, said)
        elif isinstance(said, ProcessStatus) and process in self._statuses:
            self._show(process, _status(self._statuses[process], said))
        elif isinstance(said, Bye):
            _log.info("%s ends: %s", process, said.reason)

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
                self._take(process, message)
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

    def _take(self, process: ProcessKey, message: Message) -> FromAgent | None:
        """Bring what a process says of the program to the store; returns what it says."""
        said, refused = read_from_agent(message)
        reader = self._readers.get(process)
        if isinstance(said, Rows) and reader is not None:
            update, refused = reader.read_valid(said.tables)
            self._store.apply(process, update)
        elif isinstance(said, CaptureNews):
            self._store.capture(process, said)
        elif isinstance(said, WatchNews):
            self._store.watch(process, said)
        elif isinstance(said, NumberedStop):
            self._store.stop(process, said)
        self._note_refused(process, refused)
        return said

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
            problem = RequestProblem(process.session, path, text)
            if problem not in self._problems:
                self._problems.add(problem)
                self._tell_problem(problem)

    def _tell_watch_problems(self, session: str) -> None:
        """Report the names that no program of a session assigned; called when all have ended."""
        processes = [each.watched for each in self._store.processes(session).values()]
        for name in dict.fromkeys(name for each in processes for name in each.problems):
            # The workers of a loader may have what the program itself has not.
            if name and self._store.is_watched_anywhere(session, name):
                continue
            text = next(each.problems[name] for each in processes if name in each.problems)
            problem = RequestProblem(session, name, text)
            if problem not in self._problems:
                self._problems.add(problem)
                self._tell_watch_problem(problem)

    def _show(self, process: ProcessKey, status: Status) -> None:
        self._statuses[process] = status
        self._tell(status)


def _status(former: Status, said: ProcessStatus) -> Status:
    """The status that a process sends; whatever it leaves out or gets wrong stays as it was."""
    told = {name: value for name, value in asdict(said).items() if value is not None}
    if said.state not in _STATES:
        told["state"] = former.state
    return replace(former, **told)
