"""Sessions of the real server: their processes, their ends, and what outlives the server."""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pygls.exceptions import JsonRpcException

from tests.python.e2e.server.test_features import HINTS, PROGRAM
from tests.support.language_client import BACKEND, Client, FakeAgent, running
from tests.support.rows import recorded

pytestmark = pytest.mark.e2e


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A program."""
    file = tmp_path / "model.py"
    file.write_text(PROGRAM, encoding="utf-8")
    return file


def states(client: Client) -> list[str]:
    return [status["state"] for status in client.statuses]


def heard(agent: FakeAgent) -> Any:
    """The next message that the server sends to an agent."""
    return agent.receive()


def test_where_a_process_stands_is_told(client: Client) -> None:
    agent = FakeAgent(client)
    client.wait(lambda: states(client) == ["connected"])
    agent.send({"type": "status", "state": "waiting"})
    agent.send(
        {
            "type": "status",
            "state": "recording",
            "message": "x",
            "torch": "2.13.0",
            "passes": 2,
            "calls": 30,
            "dropped": 1,
        }
    )
    agent.send({"type": "status", "state": None, "passes": "many"})
    agent.send({"type": "never heard of"})
    agent.send({"type": "bye", "reason": "the program ended"})
    agent.close()
    client.wait(lambda: states(client)[-1:] == ["gone"])
    assert states(client) == ["connected", "waiting", "recording", "recording", "gone"]
    last = client.statuses[-1]
    assert (last["torch"], last["passes"], last["calls"], last["dropped"]) == ("2.13.0", 2, 30, 1)
    assert last["session"] == "session-1"
    assert last["process"] == agent.process


def test_rows_that_make_no_sense_do_no_harm(client: Client, path: Path) -> None:
    uri = client.open(path)
    agent = FakeAgent(client)
    agent.send({"type": "rows", "ops": [[1, 2, 3]]})
    agent.send({"type": "rows", "values": "none"})
    agent.send_all(recorded(path))
    client.wait(lambda: client.places(uri) == HINTS)


def test_all_processes_of_a_session_are_woken(client: Client) -> None:
    agents = [FakeAgent(client, process=number) for number in (101, 102)]
    FakeAgent(client, "session-2")
    client.wait(lambda: states(client) == ["connected"] * 3)
    assert client.request("shapetrace/wake", {"session": "session-1"}) == {"processes": 2}
    assert [heard(agent)["type"] for agent in agents] == ["wake", "wake"]
    assert client.request("shapetrace/wake", {"session": "nobody"}) == {"processes": 0}
    evaluation = {"session": "session-1", "number": 7}
    assert client.request("shapetrace/cancelEvaluation", evaluation) == {"processes": 2}
    cancel = {"type": "cancel", "evaluation": 7}
    assert [heard(agent) for agent in agents] == [cancel, cancel]


def test_when_a_session_is_closed_its_processes_are_told(client: Client, path: Path) -> None:
    uri = client.open(path)
    agent = FakeAgent(client)
    agent.send_all(recorded(path))
    client.wait(lambda: client.places(uri) == HINTS)
    assert client.request("shapetrace/closeSession", {"session": "session-1"}) is None
    assert heard(agent)["type"] == "finish"
    agent.close()
    client.wait(lambda: states(client)[-1] == "gone")
    assert client.places(uri) == HINTS


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("shapetrace/openSession", {}),
        ("shapetrace/openSession", None),
        ("shapetrace/wake", {"session": 3}),
        ("shapetrace/cancelEvaluation", {"session": "session-1", "number": "3"}),
        ("shapetrace/export", {"path": "x", "format": "pdf"}),
    ],
)
def test_requests_that_are_wrong_are_refused(client: Client, method: str, params: Any) -> None:
    with pytest.raises(JsonRpcException):
        client.request(method, params)
    assert client.request("shapetrace/wake", {"session": "nobody"}) == {"processes": 0}


def test_a_session_is_found_again_after_a_restart(tmp_path: Path, path: Path) -> None:
    storage = tmp_path / "storage"
    client = Client(storage)
    client.start()
    uri = client.open(path)
    agent = FakeAgent(client)
    agent.send_all(recorded(path))
    client.wait(lambda: client.places(uri) == HINTS)
    opened = agent.opened
    client.kill()
    agent.close()
    with running(storage) as restarted:
        uri = restarted.open(path)
        restarted.wait(lambda: restarted.places(uri) == HINTS)
        again = FakeAgent(restarted, again=opened)
        assert again.opened == opened
        # The process connects anew, and says everything once more.
        again.send_all(recorded(path))
        restarted.wait(lambda: states(restarted) == ["connected"])
        restarted.wait(lambda: restarted.places(uri) == HINTS)
        restarted.request("shapetrace/clear", {})
    with running(storage) as emptied:
        uri = emptied.open(path)
        assert emptied.places(uri) == []


def test_strangers_do_no_harm(client: Client, path: Path) -> None:
    uri = client.open(path)
    agent = FakeAgent(client)
    for data in (b"GET / HTTP/1.1\r\n\r\n", struct.pack(">I", 1 << 31), b"\0\0\0\2{}", b"\0"):
        with socket.create_connection(("127.0.0.1", agent.opened["port"])) as stranger:
            stranger.sendall(data)
    agent.send_all(recorded(path))
    client.wait(lambda: client.places(uri) == HINTS)


def test_nothing_but_messages_is_written_to_the_editor(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from shapetrace.server.__main__ import take_standard_streams\n"
        "reader, writer = take_standard_streams()\n"
        "print('lost')\n"
        "import os; os.write(1, b'lost as well')\n"
        "assert sys.stdin.read() == ''\n"
        "writer.write(reader.read()); writer.flush()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=b"kept",
        capture_output=True,
        timeout=60,
        env={"PYTHONPATH": str(BACKEND)},
        check=True,
    )
    assert done.stdout == b"kept"
    assert b"lost" in done.stderr


def test_the_server_ends_with_the_editor(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "shapetrace.server", "--stdio"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": str(BACKEND)},
    ) as server:
        assert server.stdin is not None
        server.stdin.close()
        assert server.wait(60) == 0


def test_the_server_never_imports_torch() -> None:
    program = (
        "import sys; from shapetrace.server.app import create_server; create_server()\n"
        "print(*sorted({'torch', 'numpy', 'rich'} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": str(BACKEND)},
        check=True,
    )
    assert done.stdout.split() == []
