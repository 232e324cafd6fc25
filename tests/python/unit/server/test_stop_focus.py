"""The stop that the editor selects, and what its process says of it, in either order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest

from shapetrace.events.stop import Stop, StoppedFunction
from shapetrace.server.listener import ProcessKey
from shapetrace.server.messages.focus import Focus, Focused, SourceLine, StopReference
from shapetrace.server.pin_and_focus import PinAndFocus
from shapetrace.server.sessions import Sessions
from shapetrace.server.stop_focus import StopFocus
from shapetrace.server.store import TraceStore
from shapetrace.transport.framing import Message
from shapetrace.transport.messages import Hello, NumberedStop, ProcessInfo, write

NOTHING = Focused(None)
NOBODY = Focus(None)
KEY = ProcessKey("session", 7)


class Server:
    """A server with the agent's end and the editor's end of it."""

    def __init__(self, patience: float = 60) -> None:
        self.store = TraceStore()
        self.sessions = Sessions(self.store, lambda _: None, lambda _: None, lambda _: None)
        self.scopes = PinAndFocus(self.store)
        self.refreshed = 0
        self.focus = StopFocus(self.store, self.scopes, self._refresh, patience)
        self.store.add_listener(self._recorded)
        self.store.add_stop_listener(self.focus.changed)

    def connect(self, key: ProcessKey = KEY) -> None:
        """A process says hello."""
        about = ProcessInfo(key.pid, 1, "3.11", "python", ())
        self.sessions.hello(key, Hello(key.session, about))

    def tell(self, number: int, key: ProcessKey = KEY) -> None:
        """A process tells of a stop, on the line of that number."""
        self.send(write(NumberedStop(number, stop_on(number))), key)

    def send(self, message: Message, key: ProcessKey = KEY) -> None:
        """A process says something."""
        self.sessions.message(key, json.loads(json.dumps(message)))

    async def select(self, number: int, key: ProcessKey = KEY) -> asyncio.Task[Focused]:
        """The editor selects a stop; its request, which has arrived."""
        wanted = Focus(StopReference(key.session, key.pid, number))
        task = asyncio.create_task(self.focus.focus(wanted))
        await asyncio.sleep(0)
        return task

    def shown(self) -> tuple[int, int] | None:
        """The number of the process in the store, and the line, of what is shown."""
        scope = self.scopes.shown
        if scope is None or scope.stop is None:
            return None
        assert scope.call == scope.stop.call
        return scope.process, scope.stop.own.line

    def _recorded(self, files: frozenset[str], counted: frozenset[str]) -> None:
        self.focus.changed()

    def _refresh(self) -> None:
        self.refreshed += 1


def stop_on(line: int) -> Stop:
    own = StoppedFunction("/net.py", "Net.forward", line, frozenset({1, 2}))
    return Stop(3, own, (StoppedFunction("/net.py", "<module>", 90, frozenset()),))


def on(line: int) -> Focused:
    return Focused(SourceLine("/net.py", line))


def scenario(body: Callable[[Server], Awaitable[None]], patience: float = 60) -> None:
    """Play something through on a server."""

    async def played() -> None:
        await body(Server(patience))

    asyncio.run(played())


def test_the_process_is_first() -> None:
    async def body(server: Server) -> None:
        server.connect()
        server.tell(1)
        assert server.shown() is None
        assert await (await server.select(1)) == on(1)
        assert (server.shown(), server.refreshed) == ((1, 1), 1)
        assert await (await server.select(1)) == on(1)
        # The same frame, asked about once more, is nothing new.
        server.send(write(NumberedStop(2, stop_on(1))))
        assert await (await server.select(2)) == on(1)
        assert (server.shown(), server.refreshed) == ((1, 1), 1)

    scenario(body)


@pytest.mark.parametrize("is_connected", [True, False])
def test_the_editor_is_first(is_connected: bool) -> None:
    async def body(server: Server) -> None:
        if is_connected:
            server.connect()
        selected = await server.select(1)
        if not is_connected:
            server.connect()
        assert not selected.done()
        server.tell(1)
        assert await selected == on(1)
        assert server.shown() == (1, 1)

    scenario(body)


def test_what_is_shown_stays_until_the_next_stop_has_come() -> None:
    async def body(server: Server) -> None:
        server.connect()
        server.tell(1)
        await (await server.select(1))
        selected = await server.select(2)
        assert server.shown() == (1, 1)
        server.tell(2)
        assert await selected == on(2)
        # The agent is asked before the editor says so.
        server.tell(3)
        assert (server.shown(), server.refreshed) == ((1, 2), 2)

    scenario(body)


def test_the_focus_is_taken_back() -> None:
    async def body(server: Server) -> None:
        server.connect()
        server.tell(1)
        await (await server.select(1))
        assert await server.focus.focus(NOBODY) == NOTHING
        assert (server.shown(), server.refreshed) == (None, 2)
        # Before the stop has come, too; and then it comes to nothing.
        selected = await server.select(2)
        assert await server.focus.focus(NOBODY) == NOTHING
        assert await selected == NOTHING
        server.tell(2)
        assert (server.shown(), server.refreshed) == (None, 2)

    scenario(body)


def test_a_later_frame_supersedes_an_earlier_one() -> None:
    async def body(server: Server) -> None:
        server.connect()
        first, second = await server.select(1), await server.select(2)
        assert await first == NOTHING
        server.tell(1)
        assert not second.done()
        assert server.shown() is None
        server.tell(2)
        assert await second == on(2)
        assert server.shown() == (1, 2)

    scenario(body)


def test_of_several_processes_the_one_is_waited_for() -> None:
    async def body(server: Server) -> None:
        other = ProcessKey("session", 8)
        server.connect()
        server.connect(other)
        selected = await server.select(1, other)
        server.tell(1)
        assert not selected.done()
        server.tell(1, other)
        assert await selected == on(1)
        assert server.shown() == (2, 1)

    scenario(body)


def test_a_process_that_ends_is_not_waited_for() -> None:
    async def body(server: Server) -> None:
        server.connect()
        server.tell(1)
        await (await server.select(1))
        selected = await server.select(2)
        server.sessions.gone(KEY, "ended")
        assert await selected == NOTHING
        # Nothing is claimed of where it was by what it said before.
        assert server.shown() is None
        assert await (await server.select(3)) == NOTHING

    scenario(body)


def test_the_last_stop_of_a_process_that_has_ended_is_shown() -> None:
    async def body(server: Server) -> None:
        server.connect()
        server.tell(1)
        server.sessions.gone(KEY, "ended")
        assert await (await server.select(1)) == on(1)
        assert server.shown() == (1, 1)

    scenario(body)


@pytest.mark.parametrize("is_selected_first", [True, False])
def test_a_process_that_connects_anew_tells_of_the_stop_again(is_selected_first: bool) -> None:
    async def body(server: Server) -> None:
        server.connect()
        if not is_selected_first:
            server.tell(1)
        selected = await server.select(1)
        server.sessions.gone(KEY, "the connection broke")
        assert await selected == (NOTHING if is_selected_first else on(1))
        server.connect()
        assert server.scopes.scope_path is None
        server.tell(1)
        assert server.shown() == (2, 1)

    scenario(body)


def test_a_stop_that_comes_late_is_shown_all_the_same() -> None:
    async def body(server: Server) -> None:
        server.connect()
        assert await (await server.select(1)) == NOTHING
        server.tell(1)
        assert server.shown() == (1, 1)

    scenario(body, patience=0.01)


def test_nothing_is_shown_of_another_stop_when_none_comes() -> None:
    async def body(server: Server) -> None:
        server.connect()
        server.tell(1)
        assert await (await server.select(1)) == on(1)
        assert await (await server.select(2)) == NOTHING
        assert server.shown() is None

    scenario(body, patience=0.01)


def test_a_request_that_the_editor_takes_back_is_forgotten() -> None:
    async def body(server: Server) -> None:
        server.connect()
        selected = await server.select(1)
        selected.cancel()
        await asyncio.wait([selected])
        server.tell(1)
        assert server.shown() == (1, 1)

    scenario(body)


def test_a_stop_that_is_wrong_is_refused_with_its_message(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def body(server: Server) -> None:
        server.connect()
        selected = await server.select(1)
        message = write(NumberedStop(1, stop_on(1)))
        server.send({**message, "stop": {**message["stop"], "own": {"line": "7"}}})
        assert "process 7 of session session: refused: a message of type stop: " in caplog.text
        assert not selected.done()
        server.tell(1)
        assert await selected == on(1)

    scenario(body)
