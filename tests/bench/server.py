"""The language server: its start, its memory, and how long the editor waits for hints."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from shapetrace.transport.framing import encode
from shapetrace.transport.handshake import this_process
from tests.bench.results import Bar, Result, Table
from tests.support import handshakes

BACKEND = Path(__file__).resolve().parents[2] / "python_backend"
MEGABYTE = 1_000_000
VISIBLE = 60
"""Lines that the editor asks for at a time."""

OPS = 100_000
LINES = 5_000
FUNCTION = 20
"""Lines of each function in the file."""


class Server:
    """A server process, spoken to in plain JSON so that hardly more than it is measured."""

    def __init__(self, storage: Path) -> None:
        began = time.perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "shapetrace.server", "--stdio"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(BACKEND)},
        )
        self._numbers = itertools.count(1)
        self.refreshes: list[float] = []
        self.statuses: list[Any] = []
        """What was said of debugged processes so far."""
        refresh = {"refreshSupport": True}
        self.request(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": None,
                "capabilities": {"workspace": {"inlayHint": refresh, "codeLens": refresh}},
                "initializationOptions": {"storage": str(storage), "settings": None},
            },
        )
        self.start_time = time.perf_counter() - began
        self.notify("initialized", {})

    def request(self, method: str, params: Any) -> Any:
        """Ask, and wait for the answer."""
        number = next(self._numbers)
        self._write({"id": number, "method": method, "params": params})
        while True:
            message = self.read()
            if message.get("id") == number and "method" not in message:
                if "error" in message:
                    raise AssertionError(message["error"])
                return message["result"]

    def notify(self, method: str, params: Any) -> None:
        """Tell."""
        self._write({"method": method, "params": params})

    def read(self) -> Any:
        """The next message of the server; a request of its own is answered."""
        output = self._process.stdout
        assert output is not None
        length = 0
        while (line := output.readline().strip()) != b"":
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        message = json.loads(output.read(length))
        if message.get("method") == "shapetrace/status":
            self.statuses.append(message["params"])
        if "method" in message and "id" in message:
            self.refreshes.append(time.perf_counter())
            self._write({"id": message["id"], "result": None})
        return message

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def resident(self) -> int:
        """Bytes of memory that the process holds."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) * 1024

    def stop(self) -> None:
        """End it."""
        self.request("shutdown", None)
        self.notify("exit", None)
        self._process.wait(60)

    def _write(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        stream = self._process.stdin
        assert stream is not None
        stream.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        stream.flush()


def server_start(quick: bool) -> Result:
    """From the start of the process to the answer to ``initialize``, and what it holds then."""
    times, sizes = [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(3 if quick else 9):
            server = Server(Path(folder))
            times.append(1000 * server.start_time)
            server.request("shapetrace/wake", {"session": "none"})
            sizes.append(server.resident() / MEGABYTE)
            server.stop()
    case = "a fresh process"
    return Result(
        (
            _bar("server start", case, "≤ 500 ms", median(times), 500, "ms"),
            _bar("server memory", case, "≤ 80 MB", median(sizes), 80, "MB"),
        )
    )


def server_answers(quick: bool) -> Result:
    """A hundred thousand recorded ops in a file of five thousand lines."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.py"
        path.write_text("\n".join(_source_lines()) + "\n")
        server = Server(Path(folder) / "storage")
        try:
            return _measure(server, path, 200 if quick else 2_000)
        finally:
            server.stop()


def trace_tree(quick: bool) -> Result:
    """The trace tree of a hundred thousand ops: in modules, and all below each other."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.py"
        path.write_text("\n".join(_source_lines()) + "\n")
        bars: list[Bar] = []
        rows: list[tuple[str, str]] = []
        for shape, nested in (("in 2,000 modules", True), ("in no module", False)):
            server = Server(Path(folder) / f"storage-{nested}")
            try:
                _measure_tree(server, path, shape, nested, 5 if quick else 20, bars, rows)
            finally:
                server.stop()
    return Result(tuple(bars), tables=(Table("Trace tree", ("what", "reached"), tuple(rows)),))


def _measure_tree(
    server: Server,
    path: Path,
    shape: str,
    nested: bool,
    rounds: int,
    bars: list[Bar],
    rows: list[tuple[str, str]],
) -> None:
    agent = _connect(server)
    agent.sendall(encode(_heading(path)))
    modules = 2_000 if nested else 0
    for message in _tree_rows(path, modules):
        agent.sendall(encode(message))
    # The last of all is found once everything before it has been read.
    marked = {"parent": None, "filter": "marked", "offset": 0, "limit": 1}
    while not server.request("shapetrace/tree", marked)["nodes"]:
        pass
    first: list[float] = []
    opened: list[float] = []
    numbers = itertools.count(OPS + modules + 2)
    for _ in range(rounds):
        # Something new, so that nothing that was answered before can be answered again.
        last = [_op(next(numbers), _executed_lines()[0], 0)]
        agent.sendall(encode({"type": "rows", "ops": last}))
        took, top = _timed_tree(server, None)
        first.append(took)
        for node in top["nodes"][-2:] if nested else ():
            opened.append(_timed_tree(server, node["id"])[0])
        if not nested:
            opened.append(_timed_tree(server, None, 200)[0])
    for text in ("relu", "no such text"):
        began = time.perf_counter()
        server.request("shapetrace/tree", {**marked, "filter": text, "limit": 200})
        rows.append((f"filter {text!r}, {shape}", f"{1000 * (time.perf_counter() - began):.0f} ms"))
    agent.close()
    case = f"{OPS:,} ops {shape}"
    bars.append(_bar("trace tree", f"first page, {case}", "≤ 200 ms", max(first), 200, "ms"))
    bars.append(_bar("trace tree", f"opening a node, {case}", "≤ 50 ms", max(opened), 50, "ms"))


def _timed_tree(server: Server, parent: str | None, offset: int = 0) -> tuple[float, Any]:
    question = {"parent": parent, "filter": "", "offset": offset, "limit": 200}
    began = time.perf_counter()
    answer = server.request("shapetrace/tree", question)
    return 1000 * (time.perf_counter() - began), answer


def _measure(server: Server, path: Path, rounds: int) -> Result:
    uri = path.as_uri()
    document = {"uri": uri, "languageId": "python", "version": 1, "text": path.read_text()}
    server.notify("textDocument/didOpen", {"textDocument": document})
    agent = _connect(server)
    first = _first_hints(server, agent, uri, path)
    began = time.perf_counter()
    for message in _rows(path):
        agent.sendall(encode(message))
    lines = _executed_lines()
    # The last row is of the last line, and comes last.
    while not _hints(server, uri, lines[-1] - 1, lines[-1] - 1):
        pass
    loaded = time.perf_counter() - began
    size = server.resident() / MEGABYTE
    chance = random.Random(0)
    calm, edited, all_lines = [], [], []
    version = 1
    for round_number in range(rounds):
        start = chance.randrange(LINES - VISIBLE)
        calm.append(_timed(server, uri, start, start + VISIBLE))
        # An editor asks again after each key, for what is on the screen.
        version += 1
        position = {"line": start, "character": 0}
        change = {"range": {"start": position, "end": position}, "text": "\n"}
        if round_number % 2:
            change["range"] = {
                "start": position,
                "end": {"line": position["line"] + 1, "character": 0},
            }
            change["text"] = ""
        identifier = {"uri": uri, "version": version}
        changes = {"textDocument": identifier, "contentChanges": [change]}
        server.notify("textDocument/didChange", changes)
        edited.append(_timed(server, uri, start, start + VISIBLE))
        if round_number % 100 == 0:
            all_lines.append(_timed(server, uri, 0, LINES))
    agent.close()
    case = f"{OPS:,} ops, {LINES:,} lines, {VISIBLE} at a time"
    return Result(
        bars=(
            _bar("first hint", "after the op was sent", "≤ 300 ms", median(first), 300, "ms"),
            _bar("server answers", f"p99, {case}", "≤ 10 ms", _p99(calm), 10, "ms"),
            _bar(
                "server answers", "p99, the same after an edit", "≤ 10 ms", _p99(edited), 10, "ms"
            ),
        ),
        tables=(
            Table(
                "Language server",
                ("what", "reached"),
                (
                    ("hints for the lines on the screen, median", f"{median(calm):.2f} ms"),
                    ("the same after an edit, median", f"{median(edited):.2f} ms"),
                    ("hints for all lines, median", f"{median(all_lines):.0f} ms"),
                    (f"reading {OPS:,} ops and showing the last", f"{loaded:.1f} s"),
                    (f"memory with {OPS:,} ops", f"{size:.0f} MB"),
                ),
            ),
        ),
    )


def _first_hints(server: Server, agent: socket.socket, uri: str, path: Path) -> list[float]:
    """Milliseconds from a row that is sent to the hint that the editor asked for in time."""
    times: list[float] = []
    agent.sendall(encode(_heading(path)))
    for number, line in enumerate(_executed_lines()[:5]):
        server.refreshes.clear()
        began = time.perf_counter()
        agent.sendall(encode({"type": "rows", "ops": [_op(10 * OPS + number, line, 0)]}))
        shown = None
        while not shown:
            while not server.refreshes:
                server.read()
            server.refreshes.clear()
            shown = _hints(server, uri, line - 1, line - 1)
        times.append(1000 * (time.perf_counter() - began))
    return times


def _connect(server: Server) -> socket.socket:
    opened = server.request(
        "shapetrace/openSession", {"session": "bench", "name": "bench", "mode": "debug"}
    )
    agent = socket.create_connection(("127.0.0.1", opened["port"]))
    handshakes.join(agent, "bench", opened["token"], this_process(["b.py"]))
    return agent


def _hints(server: Server, uri: str, first: int, last: int) -> Any:
    lines = {"start": {"line": first, "character": 0}, "end": {"line": last, "character": 0}}
    params = {"textDocument": {"uri": uri}, "range": lines}
    return server.request("textDocument/inlayHint", params)


def _timed(server: Server, uri: str, first: int, last: int) -> float:
    began = time.perf_counter()
    shown = _hints(server, uri, first, last)
    took = 1000 * (time.perf_counter() - began)
    if not shown:
        raise AssertionError("there should be hints")
    return took


def _p99(times: Sequence[float]) -> float:
    return sorted(times)[int(0.99 * len(times))]


def _bar(row: str, case: str, bar: str, reached: float, limit: float, unit: str) -> Bar:
    digits = 1 if reached < 100 else 0
    return Bar(row, case, bar, f"{reached:.{digits}f} {unit}", reached <= limit)


# The file and what a recorder might have sent of it: `    x = x + 1` on most lines.


def _source_lines() -> Iterator[str]:
    for number in range(1, LINES + 1):
        yield "    x = x + 1" if number % FUNCTION != 1 else f"def function_{number}(x):"


def _executed_lines() -> list[int]:
    return [number for number in range(1, LINES + 1) if number % FUNCTION != 1]


def _heading(path: Path) -> dict[str, Any]:
    """What all ops refer to: the source, frames, values, modules."""
    text = path.read_text()
    digest = hashlib.sha256(text.encode()).hexdigest()
    frames = [
        (line, str(path), line, f"function_{line - (line - 1) % FUNCTION}", 8, line, 13)
        for line in _executed_lines()
    ]
    sizes = 30
    values = [
        (number, (0, [2 + number, 16, 64], "float32", "cpu", True, None, "Tensor", "strided", None))
        for number in range(1, sizes + 1)
    ]
    return {
        "type": "rows",
        "sources": [(str(path), digest, text)],
        "frames": frames,
        "stacks": [(line, 0, line) for line in _executed_lines()],
        "values": values,
    }


def _op(number: int, line: int, turn: int) -> tuple[Any, ...]:
    value = 1 + turn % 30
    form = ("torch.Tensor.add", "+", "{0} + 1")
    place = (None, line, True, line, (value,), ("x",))
    return (number, *form, *place, None, (value,), 1, "torch", None, None, None)


def _tree_rows(path: Path, modules: int) -> Iterator[dict[str, Any]]:
    """Twenty layers of blocks with their ops, or as many ops in no module."""
    lines = _executed_lines()
    each = OPS // max(modules, 1)
    number = 0
    for block in range(max(modules, 1)):
        module = None
        rows: list[tuple[Any, ...]] = []
        if modules:
            number += 1
            module = number
            place = (lines[0], 0)
            module_row = (number, None, f"layers.{block}", "Layer", "", 1, 1, *place, (1,), ("x",))
            rows_of_modules = [(*module_row, ("x",), None, (1,), 0, None, None, True)]
        else:
            rows_of_modules = []
        for index in range(each):
            number += 1
            row = _op(number, lines[(block * each + index) % len(lines)], index)
            rows.append((*row[:4], module, *row[5:]))
        for start in range(0, len(rows), 2_000):
            yield {"type": "rows", "modules": rows_of_modules, "ops": rows[start : start + 2_000]}
            rows_of_modules = []
    number += 1
    marked = _op(number, lines[0], 0)
    yield {"type": "rows", "ops": [(marked[0], "torch.marked", "marked", *marked[3:])]}


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    lines = _executed_lines()
    turns = -(-OPS // len(lines))
    rows = [
        _op(turn * len(lines) + index, line, turn)
        for turn in range(turns)
        for index, line in enumerate(lines)
    ]
    rows = rows[len(rows) - OPS :]
    for start in range(0, len(rows), 2_000):
        yield {"type": "rows", "ops": rows[start : start + 2_000]}
