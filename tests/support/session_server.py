"""The server's end of a debug session, without an editor: what the agents of its processes said.

with SessionServer() as server:
    environment = server.environment()      # for the program
    ...
    process = server.process()              # waits for a hello
    process.wait_for(lambda it: it.ops)
    process.hello.process.python
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from shapetrace.events.model import Coverage, Frame, ModuleCall, Op, Run, Tensor, Variable
from shapetrace.events.rows import RowReader
from shapetrace.events.stop import Stop
from shapetrace.server.listener import AgentListener, ProcessKey
from shapetrace.server.requested import Requested
from shapetrace.transport.framing import Message
from shapetrace.transport.messages import (
    Bye,
    Hello,
    NumberedStop,
    ProcessStatus,
    Rows,
    read_from_agent,
)
from shapetrace.transport.requested import (
    CAPTURED,
    WATCHED,
    CapturedValue,
    CaptureNews,
    RunningCall,
    WatchedChange,
    WatchNews,
)
from shapetrace.transport.session_address import VARIABLE, AfterPass, Level, Mode, SessionAddress
from shapetrace.transport.session_address import write_address as text_of_address
from shapetrace.views.shapes import value_text
from tests.support.debug_adapter import PATIENCE
from tests.support.debug_client import Launch

BACKEND = Path(__file__).parents[2] / "python_backend"
HIDING_RULE = {"path": f"{BACKEND}/**", "include": False}
"""The rule that the extension adds to each launch configuration."""

Answer = TypeVar("Answer")


class Heard:
    """The messages of one process so far."""

    def __init__(self, news: threading.Condition, hello: Hello) -> None:
        self.hello = hello
        self.hellos = 1
        self.statuses: list[Message] = []
        self.run: Run | None = None
        self.sources: dict[str, str | None] = {}
        self.frames: list[Frame] = []
        self.modules: dict[int, ModuleCall] = {}
        self.ops: dict[int, Op] = {}
        self.variables: dict[int, Variable] = {}
        self.counts: dict[int, int] = {}
        self.coverage: tuple[Coverage, ...] = ()
        self.captured: Requested[CapturedValue] = Requested(CAPTURED)
        self.watched: Requested[WatchedChange] = Requested(WATCHED)
        self.watched_calls: dict[int, RunningCall] = {}
        self.stop: NumberedStop | None = None
        """The last one."""
        self.bye: str | None = None
        self.gone: str | None = None
        """The reason why the connection ended; None while it is open."""
        self._news = news
        self._reader = RowReader()

    @property
    def states(self) -> list[str]:
        """The states it went through, without repetitions."""
        states: list[str] = []
        for status in self.statuses:
            if not states or states[-1] != status["state"]:
                states.append(status["state"])
        return states

    def calls(self, *files: Path) -> list[str]:
        """The ops of the program's, in the order they were first seen: line and label."""
        wanted = set(map(str, files))
        return [
            f"{op.line}: {op.label}"
            for _, op in sorted(self.ops.items())
            if not files or op.file in wanted
        ]

    def files(self) -> set[str]:
        """Where the program's ops and module calls were made."""
        return {op.file for op in self.ops.values()}

    def input_shapes(self) -> set[object]:
        """The shapes that modules were called with."""
        values = [module.inputs[0] for module in self.modules.values()]
        return {value.shape for value in values if isinstance(value, Tensor)}

    def module_counts(self) -> dict[str, int]:
        """How often each module was called, by path."""
        counts: dict[str, int] = {}
        for module in self.modules.values():
            number = self.counts.get(module.id, module.count or 0)
            counts[module.path] = counts.get(module.path, 0) + number
        return counts

    def values(self, name: str) -> list[CapturedValue]:
        """The captured values of a name."""
        named = [kept for kept in self.captured.names.values() if kept.about.name == name]
        return [value for kept in named for value in kept]

    def changes(self, name: str) -> list[str]:
        """How a watched variable has changed, and on which lines."""
        found = []
        for timeline in self.watched.names.values():
            for change in timeline if timeline.about.request == name else ():
                event = change.event
                before = "" if event.before is None else f"{value_text(event.before.value)} → "
                after = value_text(event.after.value)
                found.append(f"{change.function} {event.line} {before}{after}")
        return found

    def wait_for(self, condition: Callable[[Heard], object], seconds: float = PATIENCE) -> None:
        """Wait until something holds of what was heard."""
        deadline = time.monotonic() + seconds
        with self._news:
            while not condition(self):
                left = deadline - time.monotonic()
                assert left > 0, f"waited in vain; heard {self}"
                self._news.wait(left)

    def stop_of(self, answer: str) -> Stop | None:
        """What was said of the stop that the agent has named to the debugger; None for none."""
        named = json.loads(answer)
        if named is None:
            return None
        process, number = named
        assert process == self.hello.process.pid
        self.wait_for(lambda it: it.stop is not None and it.stop.number == number)
        assert self.stop is not None
        return self.stop.stop

    def wait_for_end(self, seconds: float = PATIENCE) -> None:
        """Wait until the process has said all it had to say."""
        self.wait_for(lambda heard: heard.gone is not None, seconds)

    def __str__(self) -> str:
        return (
            f"{self.hello.process.pid}: {self.states}, {len(self.ops)} ops, "
            f"{len(self.modules)} module calls, bye {self.bye!r}, gone {self.gone!r}, "
            f"last {self.statuses[-1:]}"
        )

    def take(self, message: Message) -> None:
        """Note a message."""
        said, refused = read_from_agent(message)
        assert refused == []
        match said:
            case Rows(tables):
                self._take_rows(tables)
            case CaptureNews():
                self.captured.add(said)
            case WatchNews(sources=sources):
                self.sources.update((source.path, source.digest) for source in sources)
                self.watched.add(said)
                if said.running is not None:
                    self.watched_calls = {each.call: each for each in said.running}
            case NumberedStop():
                self.stop = said
            case ProcessStatus():
                self.statuses.append(message)
            case Bye(reason):
                self.bye = reason

    def begin_anew(self, hello: Hello) -> None:
        """The process has connected again and sends everything again."""
        self.__init__(self._news, hello)  # type: ignore[misc]
        self.hellos += 1

    def _take_rows(self, message: Mapping[str, Any]) -> None:
        update = self._reader.read(message)
        self.run = update.run or self.run
        self.sources.update((source.path, source.digest) for source in update.sources)
        self.frames += update.frames
        self.modules |= {module.id: module for module in update.modules}
        self.ops |= {op.id: op for op in update.ops}
        self.variables |= update.variables
        self.counts |= update.counts
        self.coverage = update.coverage or self.coverage


class SessionServer:
    """Listens as the language server does, in a thread of this process."""

    def __init__(
        self,
        port: int | None = None,
        token: str | None = None,
        session: str = "a session",
        captures: Sequence[str] = (),
        watches: Sequence[str] = (),
    ) -> None:
        self.session = session
        self.watches = tuple(watches)
        """The variables that programs are to watch."""
        self.captures = tuple(captures)
        """The paths of values that programs are to capture."""
        self.port = 0
        self.token = ""
        self.all: dict[int, Heard] = {}
        """By process id."""
        self._wanted = (token, port)
        self._news = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> SessionServer:
        self._thread.start()
        self.port, self.token = self._do(self._open())
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Be gone, as a server that was killed."""
        if self._loop.is_closed():
            return
        self._do(self._listener.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def environment(
        self,
        mode: Mode = "debug",
        after_pass: AfterPass = "stop",
        level: Level = "torch",
        token: str | None = None,
        shows_variables: bool = True,
        folder: str = "",
    ) -> dict[str, str]:
        """The variables that the extension adds to the environment of the program."""
        address = SessionAddress(
            self.session,
            self.port,
            token or self.token,
            mode,
            after_pass,
            level,
            shows_variables,
            folder,
            self.captures,
            self.watches,
        )
        return {"PYTHONPATH": str(BACKEND), VARIABLE: text_of_address(address)}

    def launch(
        self,
        mode: Mode = "debug",
        after_pass: AfterPass = "stop",
        how: Launch | None = None,
    ) -> Launch:
        """How the extension starts a program."""
        how = how or Launch()
        environment = {**how.environment, **self.environment(mode, after_pass)}
        return replace(how, environment=environment, rules=[HIDING_RULE, *how.rules])

    def process(self, seconds: float = PATIENCE) -> Heard:
        """The process that said hello first."""
        return self.processes(1, seconds)[0]

    def processes(self, number: int, seconds: float = PATIENCE) -> list[Heard]:
        """The first so many processes to say hello, in that order."""
        deadline = time.monotonic() + seconds
        with self._news:
            while len(self.all) < number:
                left = deadline - time.monotonic()
                assert left > 0, f"{len(self.all)} of {number} processes said hello"
                self._news.wait(left)
            return list(self.all.values())[:number]

    def send(self, process: Heard, message: Message) -> bool:
        """Send a command to a process."""
        key = ProcessKey(self.session, process.hello.process.pid)

        async def send() -> bool:
            return self._listener.send(key, message)

        return self._do(send())

    async def _open(self) -> tuple[int, str]:
        self._listener = AgentListener(_Ear(self))
        return await self._listener.open_session(self.session, "test", "debug", *self._wanted)

    def _do(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)


class _Ear:
    """Passes on the listener's calls."""

    def __init__(self, server: SessionServer) -> None:
        self._server = server

    def hello(self, process: ProcessKey, hello: Hello) -> None:
        with self._server._news:
            known = self._server.all.get(process.pid)
            if known is None:
                self._server.all[process.pid] = Heard(self._server._news, hello)
            else:
                known.begin_anew(hello)
            self._server._news.notify_all()

    def message(self, process: ProcessKey, message: Message) -> None:
        with self._server._news:
            self._server.all[process.pid].take(message)
            self._server._news.notify_all()

    def gone(self, process: ProcessKey, reason: str) -> None:
        with self._server._news:
            self._server.all[process.pid].gone = reason
            self._server._news.notify_all()
