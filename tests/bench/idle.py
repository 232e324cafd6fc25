"""What is used of the processor while nothing happens: by the language server, and by the agent."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shapetrace.transport.session_address import VARIABLE, SessionAddress, write_address
from tests.bench.results import Bar, Result
from tests.bench.server import BACKEND, Server
from tests.support.debug_client import DebugSession, Launch, Script, launch

PROGRAM = """
import os, threading, time
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
outputs = model(torch.ones(2, 4))
print("process", os.getpid(), flush=True)
stopped = True  # @stopped
while not os.path.exists("stop"):
    time.sleep(0.5)  # @asleep
"""

SERVER_BAR = 0.01
"""Percent of one processor that count as nothing: a tenth of a millisecond in each second."""
PROGRAM_BAR = 1.0
"""The same for a program: the agent looks for news twenty times a second."""
QUIET_SECONDS = 0.2


def idle(quick: bool) -> Result:
    """A server with nothing to do in every state, and an agent whose program waits."""
    seconds = 2.0 if quick else 10.0
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder) / "storage")
        try:
            return Result(tuple(_bars(server, Path(folder), seconds)))
        finally:
            server.stop()


def _bars(server: Server, folder: Path, seconds: float) -> Iterator[Bar]:
    yield _server_bar(server, "no session", seconds)
    script = Script.write(PROGRAM, folder)
    with _debugged(server, script) as session:
        session.break_at("stopped")
        session.go()
        session.stop()
        process = int(session.output("stdout").rpartition("process ")[2].split()[0])
        _look(server, script.path)
        yield _server_bar(server, "a program that has stopped, tree and file open", seconds)
        yield _program_bar(process, "stopped, agent and debugger together", seconds)
        session.clear_breakpoints()
        session.resume()
        yield _server_bar(server, "a program that sleeps, tree and file open", seconds)
        yield _program_bar(process, "asleep, agent and debugger together", seconds)
        session.disconnect()
    server.request("shapetrace/closeSession", {"session": "idle"})
    _look(server, script.path)
    yield _server_bar(server, "a session that is over, tree and file open", seconds)


@contextmanager
def _debugged(server: Server, script: Script) -> Iterator[DebugSession]:
    params = {"session": "idle", "name": "idle", "mode": "debug"}
    opened = server.request("shapetrace/openSession", params)
    address = SessionAddress("idle", opened["port"], opened["token"])
    ours = {"PYTHONPATH": str(BACKEND), VARIABLE: write_address(address), "OMP_NUM_THREADS": "1"}
    rules = [{"path": f"{BACKEND}/**", "include": False}]
    with launch(script, Launch(environment=ours, rules=rules)) as session:
        yield session


def _look(server: Server, path: Path) -> None:
    """Have the server show the tree and the file, as an editor with both open does."""
    text = path.read_text("utf-8")
    document = {"uri": path.as_uri(), "languageId": "python", "version": 1, "text": text}
    server.notify("textDocument/didOpen", {"textDocument": document})
    page = {"parent": None, "filter": "", "offset": 0, "limit": 200}
    while not server.request("shapetrace/tree", page)["nodes"]:
        pass
    lines = {"start": {"line": 0, "character": 0}, "end": {"line": 20, "character": 0}}
    params = {"textDocument": {"uri": path.as_uri()}, "range": lines}
    server.request("textDocument/inlayHint", params)


def _server_bar(server: Server, case: str, seconds: float) -> Bar:
    threads = list(Path(f"/proc/{server.pid}/task").iterdir())
    server.request("shapetrace/wake", {"session": "none"})
    while _used(threads, QUIET_SECONDS) > SERVER_BAR:
        pass  # It still has something to do.
    return _bar("idle server", case, _used(threads, seconds), SERVER_BAR)


def _program_bar(process: int, case: str, seconds: float) -> Bar:
    threads = list(Path(f"/proc/{process}/task").iterdir())
    return _bar("idle program", case, _used(threads, seconds), PROGRAM_BAR)


def _bar(row: str, case: str, percent: float, limit: float) -> Bar:
    bar = f"≤ {limit:g} % of one processor"
    return Bar(row, case, bar, f"{percent:.3f} %", percent <= limit)


def _used(threads: list[Path], seconds: float) -> float:
    """Percent of one processor that some threads use."""
    before, began = _nanoseconds(threads), time.monotonic()
    time.sleep(seconds)
    return 100 * (_nanoseconds(threads) - before) / 1e9 / (time.monotonic() - began)


def _nanoseconds(threads: list[Path]) -> int:
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads)
