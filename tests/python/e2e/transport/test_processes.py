from __future__ import annotations

import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from shapetrace.server.message_journal import Journal
from tests.python.e2e.transport.programs import Case, case

pytestmark = pytest.mark.e2e

SILENT = (0, "", "")


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Case]:
    with case(tmp_path) as running:
        yield running


def journal(started: Case) -> list[int]:
    """The numbers of the rows that the newest parts of the journal hold."""
    return [
        message["number"]
        for replayed in Journal(started.folder / "storage").replay()
        for message in replayed.messages
    ]


def test_a_program_that_ends_at_once_has_told_everything(started: Case) -> None:
    server = started.server()
    program = started.program(server, "for number in range(300): say(number, 10_000)")
    assert program.result() == SILENT
    assert server.until_gone() == list(range(300))
    assert server.told[-1] == {"gone": program.process.pid, "reason": "ended"}
    assert journal(started) == list(range(300))


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        ("raise SystemExit(3)", 3),
        ("1 / 0", 1),
        ("import signal; signal.raise_signal(signal.SIGINT)", -signal.SIGINT),
    ],
)
def test_however_python_ends_a_program(started: Case, ending: str, status: int) -> None:
    server = started.server()
    program = started.program(server, f"say(1)\n{ending}")
    assert program.result()[0] == status
    assert server.until_gone() == [1]


def test_a_program_that_is_killed_within_a_frame(started: Case) -> None:
    server = started.server()
    program = started.program(
        server,
        """
        say(1)
        input()
        import os, signal
        connection = agent_thread.sender._connection
        # The thread is in the middle of nothing: this is the beginning of a frame.
        os.write(connection._socket.fileno(), bytes([0, 0, 1, 0]) + b'{"type":')
        os.kill(os.getpid(), signal.SIGKILL)
        """,
    )
    server.until(lambda told: "row" in told[-1])
    program.go_on()
    assert program.result()[0] == -signal.SIGKILL
    server.until_gone()
    assert server.told[-1]["reason"] == "cut off in the middle of a frame"


def test_a_server_that_is_killed_within_a_frame_and_comes_back(started: Case) -> None:
    server = started.server()
    program = started.program(
        server,
        """
        for number in range(20): say(number, 2_000_000)
        input()
        say(20)
        """,
    )
    server.until(lambda told: "row" in told[-1])
    # It is stopped first, so that the socket is full and the program is within a frame.
    server.process.send_signal(signal.SIGSTOP)
    server.process.kill()
    server.process.wait()
    again = started.server(server.port, server.token)
    assert (again.port, again.token) == (server.port, server.token)
    again.until(lambda told: told[-1].get("row") == 19)
    program.go_on()
    assert program.result() == SILENT
    assert again.until_gone() == list(range(21))
    assert journal(started) == list(range(21))


def _ends_with_row(number: int, told: list[dict[str, Any]]) -> bool:
    return told[-1].get("row") == number


def test_a_server_that_comes_back_again_and_again(started: Case) -> None:
    server = started.server()
    program = started.program(
        server,
        """
        for number in range(5):
            say(number)
            input()
        """,
    )
    for number in range(5):
        server.until(partial(_ends_with_row, number))
        assert server.rows() == list(range(number + 1))
        server.process.kill()
        server.process.wait()
        server = started.server(server.port, server.token)
        program.go_on()
    assert program.result() == SILENT
    assert server.until_gone() == list(range(5))


def test_a_program_that_outlives_its_server(started: Case) -> None:
    server = started.server()
    program = started.program(
        server,
        """
        say(1)
        input()
        for number in range(1000): say(number, 10_000)
        """,
    )
    server.until(lambda told: "row" in told[-1])
    server.process.kill()
    server.process.wait()
    program.go_on()
    assert program.result() == SILENT


def test_a_server_that_reads_nothing_costs_rows_and_no_time(started: Case) -> None:
    server = started.server()
    program = started.program(
        server,
        """
        say(0)
        input()
        sender = agent_thread.sender
        taken = 0
        # The offers of the agent's thread, made here: none of them waits for the server, which
        # is stopped until all were made.
        for number in range(1, 401):
            taken += sender.offer({"type": "rows", "number": number, "text": "x" * 100_000})
        print(taken, sender.dropped, flush=True)
        """,
    )
    server.until(lambda told: "row" in told[-1])
    server.process.send_signal(signal.SIGSTOP)
    program.go_on()
    taken, dropped = map(int, program.line().split())
    server.process.send_signal(signal.SIGCONT)
    assert program.result() == SILENT
    assert taken + dropped == 400
    assert dropped > 200
    assert len(server.until_gone()) == 1 + taken


def test_commands_arrive(started: Case) -> None:
    server = started.server()
    program = started.program(
        server,
        """
        say(1)
        input()
        print(agent_thread.commands)
        """,
    )
    server.until(lambda told: "row" in told[-1])
    server.command("wake")
    # The end of the program comes after the command: both go through the same loop.
    server.command("stop")
    program.go_on()
    assert program.result()[::2] == (0, "")


@pytest.mark.parametrize(
    "fork",
    [
        "os.fork()",
        # Python is not told of this one.
        "__import__('ctypes').PyDLL(None).fork()",
    ],
)
def test_a_program_that_forks(started: Case, fork: str) -> None:
    server = started.server()
    program = started.program(
        server,
        f"""
        import os, sys, warnings
        warnings.simplefilter("ignore")
        say(1)
        input()
        child = {fork}
        if child == 0:
            # The child goes on as a program, and ends as one.
            assert not agent_thread.sender.offer({{"type": "rows", "number": 99, "text": ""}})
            sys.exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        say(2)
        """,
    )
    server.until(lambda told: "row" in told[-1])
    program.go_on()
    assert program.result() == (0, "7\n", "")
    assert server.until_gone() == [1, 2]


def test_processes_made_by_forking_many_times_while_rows_are_sent(started: Case) -> None:
    server = started.server()
    program = started.program(
        server,
        """
        import os, warnings
        warnings.simplefilter("ignore")
        for number in range(100):
            say(number, 200_000)
            if number % 5 == 0:
                child = os.fork()
                if child == 0:
                    agent_thread.sender.close()
                    os._exit(0)
                assert os.waitpid(child, 0)[1] == 0
        """,
    )
    assert program.result() == SILENT
    assert server.until_gone() == list(range(100))


def test_a_program_that_is_replaced_by_another(started: Case) -> None:
    server = started.server()
    program = started.program(
        server,
        """
        import os, sys
        say(1)
        input()
        os.execv(sys.executable, [sys.executable, "-c", "input()"])
        """,
    )
    server.until(lambda told: "row" in told[-1])
    program.go_on()
    # The connection ends with the first program: the second one has not inherited it.
    assert server.until_gone() == [1]
    program.go_on()
    assert program.result()[0] == 0


def test_children_inherit_no_descriptor(started: Case) -> None:
    server = started.server()
    program = started.program(
        server,
        """
        import os, subprocess, sys
        say(1)
        input()
        assert agent_thread.sender.is_connected
        listing = "import os; print([n for n in os.listdir('/proc/self/fd') if int(n) > 3])"
        subprocess.run([sys.executable, "-c", listing], close_fds=False, check=True)
        """,
    )
    server.until(lambda told: "row" in told[-1])
    program.go_on()
    assert program.result() == (0, "[]\n", "")


def test_a_broken_connection_raises_no_signal(started: Case) -> None:
    server = started.server()
    program = started.program(
        server,
        """
        import signal, socket
        from shapetrace.transport.connection import Connection, ConnectionLost

        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        listening = socket.create_server(("127.0.0.1", 0))
        connection = Connection(listening.getsockname()[1], 5.0)
        listening.accept()[0].close()
        listening.close()
        try:
            while True:
                connection.send(memoryview(b"x" * 1000), 5.0)
        except ConnectionLost as error:
            print(error)
        try:
            connection.send(memoryview(b"x" * 1000), 5.0)
        except ConnectionLost as error:
            print(error)
        connection.close()
        """,
    )
    status, stdout, stderr = program.result()
    assert (status, stderr) == (0, "")
    assert stdout.splitlines()[-1] == "Broken pipe"


def test_a_program_that_closes_every_descriptor_and_uses_the_numbers_again(started: Case) -> None:
    server = started.server()
    program = started.program(
        server,
        """
        import os, socket
        say(1)
        input()
        agent_thread.rows[0]["text"] = "once more"
        os.closerange(3, 200)
        pairs = [socket.socketpair() for _ in range(8)]
        for number in range(2, 50): say(number, 1000)
        input()
        def got(end):
            end.setblocking(False)
            try:
                return end.recv(100)
            except BlockingIOError:
                return None

        ends = [end for pair in pairs for end in pair]
        print({got(end) for end in ends})
        for end in ends:
            end.send(b"still connected")
        print({got(end) for end in ends})
        for end in ends:
            end.close()
        """,
    )
    server.until(lambda told: "row" in told[-1])
    program.go_on()
    # The connection went with its descriptor; another one was made.
    server.until(lambda told: told[-1].get("row") == 49)
    program.go_on()
    assert program.result() == (0, "{None}\n{b'still connected'}\n", "")
    assert server.until_gone() == list(range(1, 50))


def test_a_program_that_replaces_what_the_agent_could_use(started: Case) -> None:
    server = started.server()
    program = started.program(
        server,
        """
        import _thread, collections, json, os, select, socket, struct, sys, threading, time

        def replaced(*arguments, **keywords):
            raise AssertionError("the program's own is used")

        for module, names in {
            socket: ["socket", "create_connection", "socketpair", "getaddrinfo", "timeout"],
            select: ["select", "poll", "epoll"],
            time: ["time", "monotonic", "sleep", "perf_counter"],
            json: ["dumps", "loads", "JSONEncoder", "JSONDecoder"],
            json.encoder: ["JSONEncoder"],
            struct: ["pack", "unpack", "Struct"],
            os: ["fstat", "getpid"],
            _thread: ["allocate_lock"],
            threading: ["Lock", "RLock", "Condition", "Event", "Thread"],
            collections: ["deque"],
        }.items():
            for name in names:
                setattr(module, name, replaced)
        # What people do to have numbers written in their own way.
        json.encoder.c_make_encoder = None
        socket.setdefaulttimeout(1e-6)
        # As freezegun does: whatever refers to a clock, in any module.
        for module in list(sys.modules.values()):
            if getattr(module, "__name__", "").startswith("shapetrace"):
                for name, value in list(vars(module).items()):
                    if getattr(value, "__module__", None) in ("time", "posix", "_thread"):
                        setattr(module, name, replaced)
        os.getpid = lambda: agent_thread._process_id
        agent_thread.thread.join = lambda: None
        for number in range(200): say(number, 1000)
        input()
        """,
    )
    server.until(lambda told: told[-1].get("row") == 199)
    program.process.kill()


def test_a_program_with_more_files_than_select_can_watch(started: Case) -> None:
    server = started.server()
    program = started.program(
        server,
        """
        import os, resource
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
        held = [os.dup(0) for _ in range(1500)]
        input()
        say(1)
        """,
    )
    server.process.kill()
    server.process.wait()
    again = started.server(server.port, server.token)
    program.go_on()
    assert program.result() == SILENT
    assert again.until_gone() == [1]


def test_a_program_that_is_interrupted_while_the_rest_is_sent(started: Case) -> None:
    server = started.server()
    program = started.program(
        server,
        """
        import atexit
        for number in range(30): say(number, 1_000_000)
        input()
        atexit.register(print, "leaving", flush=True)
        """,
    )
    server.until(lambda told: "row" in told[-1])
    server.process.send_signal(signal.SIGSTOP)
    program.go_on()
    assert program.line() == "leaving"
    program.process.send_signal(signal.SIGINT)
    # It ends, though the server is still stopped and closing may take half a minute here.
    program.result()


def test_a_program_without_a_server_ends_as_ever(started: Case) -> None:
    server = started.server()
    server.process.kill()
    server.process.wait()
    program = started.program(server, "say(1)\nprint('done')")
    assert program.result() == (0, "done\n", "")


def test_a_server_of_another_session_tells_nothing(started: Case) -> None:
    server = started.server()
    server.token = "0" * 64
    program = started.program(
        server,
        """
        say(1)
        agent_thread.thread.join()
        print(agent_thread.sender.trouble)
        """,
    )
    status, stdout, stderr = program.result()
    assert (status, stderr) == (0, "")
    assert stdout == "the server there does not know the session's token\n"
    assert [told for told in server.told if "hello" in told] == []


def test_the_agents_side_imports_the_standard_library_only(started: Case) -> None:
    server = started.server()
    program = started.program(
        server,
        """
        import sys
        print(*sorted({"asyncio", "logging", "select", "socket", "ssl", "_hashlib", "_ssl",
                       "torch", "numpy", "pygls"} & sys.modules.keys()))
        """,
    )
    assert program.result() == (0, "\n", "")
