"""Programs that run without us, to be attached to.

with running(script) as program:
    program.wait_for("ready")
    with program.attached() as session:
        enter(session, server)
        ...
    program.say("go on")
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.debug_adapter import PATIENCE, Connection
from tests.support.debug_client import DebugSession, Script
from tests.support.session_server import BACKEND, HIDING_RULE, SessionServer

ENTER = Path(__file__).parents[2] / "extension" / "launcher" / "enter.py"


def enter(session: DebugSession, server: SessionServer, backend: Path = BACKEND) -> None:
    """Bring the agent in, as the extension does."""
    given = {"backend": str(backend), "session": server.environment()["SHAPETRACE_SESSION"]}
    session.evaluate(f"exec({json.dumps(ENTER.read_text())}, {json.dumps(given)})")


@contextmanager
def running(
    script: Script,
    *,
    listening: bool = True,
    environment: Mapping[str, str] | None = None,
    follows_children: bool = True,
) -> Iterator[Running]:
    """Run a program without us, which listens for a debugger or knows nothing of one."""
    port = free_port()
    debugpy = ["-m", "debugpy", "--listen", f"127.0.0.1:{port}"] if listening else []
    if listening and not follows_children:
        debugpy += ["--configure-subProcess", "False"]
    given = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    given |= {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", **(environment or {})}
    process = subprocess.Popen(
        [sys.executable, "-Xfrozen_modules=off", *debugpy, str(script.path)],
        cwd=script.path.parent,
        env=given,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    program = Running(process, port, script)
    try:
        yield program
    finally:
        program.end()


class Running:
    """A program that runs whether it is debugged or not."""

    def __init__(self, process: subprocess.Popen[str], port: int, script: Script) -> None:
        self.process = process
        self.port = port
        self.script = script
        self.lines: list[str] = []
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def output(self) -> str:
        """The output so far."""
        return "".join(self.lines)

    def say(self, line: str) -> None:
        """Give it a line to read."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def wait_for(self, text: str, seconds: float = PATIENCE) -> None:
        """Wait until it has written something."""
        with self._news:
            come = self._news.wait_for(lambda: text in self.output, seconds)
        assert come, f"{text!r} is not in:\n{self.output}"

    def wait_for_end(self, seconds: float = PATIENCE) -> int:
        """Its exit code."""
        code = self.process.wait(seconds)
        self._reader.join(seconds)
        return code

    def end(self) -> None:
        """End it by force, if it runs still."""
        self.process.kill()
        self.process.wait()
        self._reader.join(PATIENCE)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()

    @contextmanager
    def attached(self, how: Mapping[str, Any] | None = None) -> Iterator[DebugSession]:
        """Debug it; it goes on when that is over."""
        configuration = {
            "name": "test",
            "type": "debugpy",
            "request": "attach",
            "justMyCode": True,
            "subProcess": False,
            "rules": [HIDING_RULE],
            "connect": {"host": "127.0.0.1", "port": self.port},
            **(how or {}),
        }
        session = DebugSession(self._connection(), self.script)
        session.start("attach", configuration)
        session.go()
        try:
            yield session
        finally:
            if not session.connection.closed:
                session.disconnect(terminate=False)
            session.connection.close()

    def _connection(self) -> Connection:
        """To the adapter that debugpy has started, once it is there."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return Connection.to("127.0.0.1", self.port)
            except ConnectionRefusedError:
                assert time.monotonic() < deadline, self.output
                assert self.process.poll() is None, self.output
                time.sleep(0.05)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._news:
                self.lines.append(line)
                self._news.notify_all()


def free_port() -> int:
    """A port that is free just now."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])
