"""A server that is slow, gone, back again, a stranger's or none at all hurts no program."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from shapetrace.events.model import Op
from shapetrace.events.rows import RowReader
from shapetrace.transport.framing import LONGEST, Decoder, Message, decode
from tests.support import handshakes
from tests.support.debug_adapter import PATIENCE
from tests.support.debug_client import Launch, Script, launch
from tests.support.session_server import HIDING_RULE, Heard, SessionServer

pytestmark = pytest.mark.e2e

PROGRAM = """
import threading
import torch
net = torch.nn.Linear(3, 4)
net(torch.ones(2, 3))
go_on = threading.Event()
print("waiting", flush=True)
go_on.wait()
net(torch.ones(5, 3))
print("over", flush=True)
"""
GO_ON = "__import__('sys').modules['__main__'].go_on.set()"

MANY_CALLS = """
import threading
import torch
source = "\\n".join(f"x = x + {number}" for number in range(1000))
for round in range(30):
    code = compile(source, f"made_{round}.py", "exec")
    exec(code, {"x": torch.ones(3)})
go_on = threading.Event()
print("waiting", flush=True)
go_on.wait()
print("over", flush=True)
"""


def test_a_wrong_token(tmp_path: Path) -> None:
    script = Script.write(PROGRAM.replace("go_on.wait()", ""), tmp_path)
    with SessionServer() as server:
        environment = server.environment(token="0" * 64)
        how = Launch(environment=environment, rules=[HIDING_RULE])
        with launch(script, how) as session:
            session.go()
            ended = session.end()
        assert server.all == {}
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "waiting\nover\n", "")


def test_nobody_listens(tmp_path: Path) -> None:
    script = Script.write(PROGRAM.replace("go_on.wait()", ""), tmp_path)
    with SessionServer() as server:
        how = server.launch()
    with launch(script, how) as session:
        session.go()
        ended = session.end()
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "waiting\nover\n", "")


@pytest.mark.parametrize("value", ["", "nonsense", "[]", '{"port": 1}', '{"session": "a"}'])
def test_a_session_that_makes_no_sense(value: str, tmp_path: Path) -> None:
    script = Script.write(PROGRAM.replace("go_on.wait()", ""), tmp_path)
    with SessionServer() as server:
        environment = {**server.environment(), "SHAPETRACE_SESSION": value}
        with launch(script, Launch(environment=environment, rules=[HIDING_RULE])) as session:
            session.go()
            ended = session.end()
        assert server.all == {}
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "waiting\nover\n", "")


def test_the_server_goes_away(tmp_path: Path) -> None:
    script = Script.write(PROGRAM, tmp_path)
    with SessionServer() as server, launch(script, server.launch()) as session:
        session.go()
        server.process().wait_for(lambda it: it.modules)
        server.stop()
        session.evaluate(GO_ON)
        ended = session.end()
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "waiting\nover\n", "")


def ops_of(heard: Heard) -> dict[int, Op]:
    """The ops, without the numbers of frames: these are counted anew for each connection."""
    return {number: replace(op, stack=()) for number, op in heard.ops.items()}


def test_the_server_is_restarted(tmp_path: Path) -> None:
    """It is told everything again, from the beginning."""
    script = Script.write(PROGRAM, tmp_path)
    with SessionServer() as first, launch(script, first.launch()) as session:
        session.go()
        # A module is told of when it is called; when it has returned, what it did is known, too.
        first.process().wait_for(lambda it: any(each.outputs for each in it.modules.values()))
        before = ops_of(first.process())
        first.stop()
        with SessionServer(first.port, first.token) as second:
            heard = second.process()
            heard.wait_for(lambda it: ops_of(it) == before)
            session.evaluate(GO_ON)
            session.end()
            heard.wait_for_end()
            assert len(heard.modules) == 2
            assert heard.bye == "the program has ended"


def test_a_server_that_is_restarted_in_the_middle_of_a_stop(tmp_path: Path) -> None:
    """It is told of the last stop again, after all that this refers to, and of the next ones."""
    text = """
    import torch
    net = torch.nn.Linear(3, 4)
    y = net(torch.ones(2, 3))
    z = y.relu()
    print("stopped")  # @stop
    """
    script = Script.write(text, tmp_path)
    module = "__import__('sys').modules['shapetrace.agent.stop_query']"
    with SessionServer() as first, launch(script, first.launch()) as session:
        session.break_at("stop")
        session.go()
        place = session.stop().top
        question = f"{module}.describe_stop({place.number})"
        answer = session.evaluate(question)
        before = first.process().stop_of(answer)
        assert before is not None
        first.stop()
        with SessionServer(first.port, first.token) as second:
            heard = second.process()
            assert heard.stop_of(answer) == before
            assert before.own.reached <= {*heard.ops, *heard.modules}
            assert heard.stop_of(session.evaluate(question)) == before
            session.clear_breakpoints()
            session.resume()
            session.end()
            heard.wait_for_end()


class LazyServer:
    """Admits the agent of a session, and reads what it is sent only when it is told to."""

    def __init__(self) -> None:
        self.may_read = threading.Event()
        self.heard: list[Message] = []
        self.token = "0123456789abcdef"
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def close(self) -> None:
        """Read nothing more."""
        self.may_read.set()
        self._listening.close()
        self.thread.join(60)

    def _serve(self) -> None:
        connection, _ = self._listening.accept()
        decoder = Decoder(LONGEST)
        with connection:
            handshakes.admit(connection, self.token)
            self.may_read.wait()
            while data := connection.recv(1 << 20):
                decoder.feed(data)
                while (payload := decoder.take()) is not None:
                    self.heard.append(decode(payload))


@pytest.fixture
def lazy() -> Iterator[LazyServer]:
    server = LazyServer()
    yield server
    server.close()


def test_a_server_that_does_not_read(lazy: LazyServer, tmp_path: Path) -> None:
    script = Script.write(MANY_CALLS.replace("go_on.wait()", ""), tmp_path)
    with SessionServer() as server:
        server.port, server.token = lazy.port, lazy.token
        with launch(script, server.launch()) as session:
            session.go()
            ended = session.end()
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "waiting\nover\n", "")


def test_a_server_that_reads_late_hears_it_all(lazy: LazyServer, tmp_path: Path) -> None:
    script = Script.write(MANY_CALLS, tmp_path)
    with SessionServer() as server:
        server.port, server.token = lazy.port, lazy.token
        with launch(script, server.launch()) as session:
            session.go()
            session.wait_for_output("waiting")
            lazy.may_read.set()
            session.evaluate(GO_ON)
            session.end()
    lazy.thread.join(60)
    reader = RowReader()
    ops: set[int] = set()
    for message in lazy.heard:
        if message["type"] == "rows":
            ops.update(op.id for op in reader.read(message).ops)
    assert len(ops) == 30 * 1000 + 1
    statuses = [message for message in lazy.heard if message["type"] == "status"]
    assert statuses[-1]["dropped"] == 0
    assert lazy.heard[-1]["type"] == "bye"


def impersonations(token: str) -> list[Callable[[socket.socket], None]]:
    """What somebody may try who has the port of a session's server, and not its token."""

    def says(*frames: Message) -> Callable[[socket.socket], None]:
        def say(connection: socket.socket) -> None:
            for frame in frames:
                handshakes.send(connection, frame)

        return say

    def writes(data: bytes) -> Callable[[socket.socket], None]:
        return lambda connection: connection.sendall(data)

    def guesses(connection: socket.socket) -> None:
        first = handshakes.receive(connection)
        port = connection.getsockname()[1]
        challenged = handshakes.challenge(first, "guessed" + token[7:], port)
        for frame in (challenged, {"type": "welcome"}, {"type": "finish"}):
            handshakes.send(connection, frame)

    def reflects(connection: socket.socket) -> None:
        handshakes.send(connection, handshakes.receive(connection))

    welcome: Message = {"type": "welcome"}
    return [
        says({**welcome, "protocol": 1}),
        guesses,
        reflects,
        writes(b""),
        writes(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        writes(struct.pack(">I", 1 << 31)),
        writes(struct.pack(">I", 60_000) + b"[" * 60_000),
        says(welcome, {"type": "watch", "names": ["__import__('os').abort()", None]}),
    ]


def test_somebody_else_has_the_port(tmp_path: Path) -> None:
    """He learns that there is a session, and nothing of the program; that notices nothing."""
    script = Script.write(PROGRAM, tmp_path)
    heard: list[bytes] = []
    all_tried = threading.Event()
    with SessionServer() as server, socket.create_server(("127.0.0.1", 0)) as listening:
        server.port = listening.getsockname()[1]

        def serve() -> None:
            for impersonate in impersonations(server.token):
                connection, _ = listening.accept()
                with connection:
                    sent = connection.recv(1 << 16, socket.MSG_PEEK)
                    with contextlib.suppress(
                        OSError
                    ):  # The agent hangs up at the first wrong word.
                        impersonate(connection)
                        connection.shutdown(socket.SHUT_WR)
                        while data := connection.recv(1 << 16):
                            sent += data
                    heard.append(sent)
            all_tried.set()
            with contextlib.suppress(OSError):
                while True:  # Silent from now on: the end of the program waits for nobody.
                    silent.append(listening.accept()[0])

        silent: list[socket.socket] = []
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with launch(script, server.launch()) as session:
            session.go()
            assert all_tried.wait(PATIENCE)
            session.evaluate(GO_ON)
            ended = session.end()
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "waiting\nover\n", "")
    said = b"".join(heard)
    assert said.count(b'"type":"connect"') >= len(heard)
    for secret in (server.token, str(tmp_path), script.path.name, '"pid"', '"hello"', "torch"):
        assert secret.encode() not in said
    for connection in silent:
        connection.close()
