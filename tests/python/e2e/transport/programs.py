"""Servers and programs in processes of their own."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from shapetrace.transport.session_address import VARIABLE, SessionAddress, write_address

ROOT = Path(__file__).parents[4]
BESIDE = Path(__file__).parent / "beside"
SESSION = "5f1c36a2-0001"
WITHIN = 60.0


class ServerProcess:
    """A server that only listens, and what it has told so far."""

    def __init__(self, storage: Path, *came_from: object) -> None:
        self.told: list[dict[str, Any]] = []
        self._lines: queue.Queue[str] = queue.Queue()
        self.process = subprocess.Popen(
            [sys.executable, str(BESIDE / "listening.py"), str(storage), *map(str, came_from)],
            env=_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        opened = self.until(lambda told: "port" in told[-1])[-1]
        self.port, self.token = opened["port"], opened["token"]

    def until(self, holds: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
        """Wait until a condition holds of what was told."""
        while not self.told or not holds(self.told):
            line = self._lines.get(timeout=WITHIN)
            assert line, f"the server has ended; it told {self.told[-5:]}"
            self.told.append(json.loads(line))
        return self.told

    def rows(self) -> list[int]:
        """The numbers of the rows that arrived, of the newest connection."""
        last_hello = max(index for index, told in enumerate(self.told) if "hello" in told)
        return [told["row"] for told in self.told[last_hello:] if "row" in told]

    def until_gone(self) -> list[int]:
        """Wait for the end of a connection; the rows that had arrived."""
        self.until(lambda told: "gone" in told[-1])
        return self.rows()

    def command(self, kind: str) -> None:
        """Have it send a command to all processes."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{kind}\n")
        self.process.stdin.flush()

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put("")


class Program:
    """A program of a user's that has an agent in it."""

    def __init__(self, server: ServerProcess, source: str, folder: Path, *flags: str) -> None:
        path = folder / "program.py"
        path.write_text("import agent_thread\nfrom agent_thread import say\n" + _dedent(source))
        address = SessionAddress(SESSION, server.port, server.token)
        self.process = subprocess.Popen(
            [sys.executable, "-X", "dev", *flags, str(path)],
            env=_environment() | {VARIABLE: write_address(address)},
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def go_on(self) -> None:
        """Let the program's ``input()`` return."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def line(self) -> str:
        """The next line it prints."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def result(self) -> tuple[int, str, str]:
        """Exit status and what it printed since."""
        stdout, stderr = self.process.communicate(timeout=WITHIN)
        return self.process.returncode, stdout, stderr

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self.process.wait()


class Case:
    """What one test starts; all of it is ended with the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._started = contextlib.ExitStack()

    def server(self, *came_from: object) -> ServerProcess:
        server = ServerProcess(self.folder / "storage", *came_from)
        self._started.callback(server.end)
        return server

    def program(self, server: ServerProcess, source: str, *flags: str) -> Program:
        program = Program(server, source, self.folder, *flags)
        self._started.callback(program.end)
        return program

    def end(self) -> None:
        self._started.close()


@contextlib.contextmanager
def case(folder: Path) -> Iterator[Case]:
    started = Case(folder)
    try:
        yield started
    finally:
        started.end()


def _environment() -> dict[str, str]:
    return os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "python_backend"), str(BESIDE)]),
        "PYTHONUNBUFFERED": "1",
    }


def _dedent(source: str) -> str:
    return textwrap.dedent(source)
