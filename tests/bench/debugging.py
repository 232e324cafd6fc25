"""What the agent costs a program that is debugged: beside the debugger alone, and beside neither.

Every launch is a process of its own. The contenders take turns all the same, launch by launch.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from shapetrace.transport.session_address import VARIABLE, SessionAddress, write_address
from tests.bench.results import Comparison, Line, Result, Table
from tests.bench.server import BACKEND, Server
from tests.bench.timing import Seconds, Turn, Turns, in_rounds, ratio
from tests.support.debug_adapter import installed_debugpy
from tests.support.debug_client import Launch, Script, launch

PROGRAM = Path(__file__).with_name("debugged.py")
PURE_DEBUGPY = BACKEND.parent / "python_libraries" / "debugpy" / "debugpy"
"""The one in the VSIX; there once that was made."""
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}


@dataclass(frozen=True)
class Way:
    """A way of starting the program."""

    name: str
    debugpy: Path | None = None
    """None where nothing debugs it."""
    breakpoint: bool = False
    agent: bool = False


INSTALLED = installed_debugpy()
PLAIN = Way("plain")
DEBUGGER = Way("debugger", INSTALLED)
WITH_US = Way("debugger, **shapetrace**", INSTALLED, agent=True)
BREAKPOINT = Way("debugger, breakpoint", INSTALLED, breakpoint=True)
BREAKPOINT_WITH_US = Way("debugger, breakpoint, **shapetrace**", INSTALLED, True, True)
PURE = Way("pure debugger", PURE_DEBUGPY)
PURE_WITH_US = Way("pure debugger, **shapetrace**", PURE_DEBUGPY, agent=True)


@dataclass(frozen=True)
class Launched:
    """What one launch took, in seconds."""

    whole: float
    first_pass: float | None
    later_pass: float | None


@dataclass
class Launches:
    """Starts the program in its ways; each figure is kept, one for each round."""

    server: Server
    folder: Path
    taken: dict[tuple[str, Way], list[Launched]] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def in_rounds(self, workload: str, ways: Iterable[Way], rounds: int) -> Turns[None]:
        """Let each way have its turn once a round."""
        yield from in_rounds([(way.name, self._turn(workload, way)) for way in ways], rounds)

    def seconds(self, workload: str, way: Way, figure: str) -> Seconds:
        """One figure of each launch, in the order of the rounds."""
        return [getattr(each, figure) for each in self.taken[workload, way]]

    def comparison(self, workload: str, title: str, base: Way, ways: Iterable[Way]) -> Comparison:
        """The passes of a workload in some ways, beside plain and beside another way."""

        def line(way: Way) -> Line:
            passes, first = (
                self.seconds(workload, way, name) for name in ("later_pass", "first_pass")
            )
            return Line(
                way.name,
                ratio(passes, self.seconds(workload, PLAIN, "later_pass")),
                ratio(passes, self.seconds(workload, base, "later_pass")),
                ratio(first, self.seconds(workload, PLAIN, "first_pass")),
            )

        return Comparison(f"under debugpy, {title}", tuple(map(line, ways)), base.name)

    def _turn(self, workload: str, way: Way) -> Turn:
        def turn() -> float:
            launched = self._launch(workload, way)
            self.taken.setdefault((workload, way), []).append(launched)
            return launched.whole

        return turn

    def _launch(self, workload: str, way: Way) -> Launched:
        figures = self.folder / "figures.json"
        arguments = [workload, str(figures)]
        if way.debugpy is None:
            whole = _run(arguments)
        elif way.agent:
            whole = self._debug_with_us(workload, way, arguments)
        else:
            whole = _debug(way, Launch(way.debugpy, ENVIRONMENT, arguments=arguments))
        found = json.loads(figures.read_text(encoding="utf-8"))
        figures.unlink()
        return Launched(whole, found.get("first pass"), found.get("pass"))

    def _debug_with_us(self, workload: str, way: Way, arguments: list[str]) -> float:
        """In a session of its own; fails where the recording was not in the state it is to be."""
        server = self.server
        session = f"launch {next(self._numbers)}"
        opened = server.request(
            "shapetrace/openSession", {"session": session, "name": session, "mode": "debug"}
        )
        whole = _debug(way, _launch_with_us(way, arguments, session, opened))
        server.request("shapetrace/closeSession", {"session": session})
        server.request("shapetrace/clear", {})
        if workload == "tiny encoder":
            states = [each["state"] for each in server.statuses if each["session"] == session]
            settled = [state == "settled" for state in states if state in ("recording", "settled")]
            if settled[-1:] != [not way.breakpoint]:
                raise AssertionError(f"{way.name}: {states}")
        return whole


def under_debugpy(quick: bool) -> Turns[Result]:
    """A tiny encoder, real work, and a program that does next to nothing."""
    settled = (PLAIN, DEBUGGER, WITH_US)
    recording = (PLAIN, BREAKPOINT, BREAKPOINT_WITH_US)
    has_pure = PURE_DEBUGPY.exists() and not quick
    start = (*settled, PURE, PURE_WITH_US) if has_pure else settled
    rounds = 1 if quick else 3
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder) / "storage")
        try:
            launches = Launches(server, Path(folder))
            both = dict.fromkeys((*settled, *recording))
            yield from launches.in_rounds("tiny encoder", both, rounds)
            yield from launches.in_rounds("one layer", start, rounds)
            if not quick:
                yield from launches.in_rounds("real work", settled, rounds)
        finally:
            server.stop()
    tiny = "tiny encoder, train"
    comparisons = [
        launches.comparison("tiny encoder", f"{tiny}, recording", BREAKPOINT, recording),
        launches.comparison("tiny encoder", f"{tiny}, settled", DEBUGGER, settled),
    ]
    if not quick:
        comparisons.append(launches.comparison("real work", "real work", DEBUGGER, settled))
    return Result(comparisons=tuple(comparisons), tables=(_start(launches, start),))


def _start(launches: Launches, ways: Iterable[Way]) -> Table:
    """Seconds that a program takes which imports torch and calls one layer."""

    def row(way: Way) -> tuple[str, str, str]:
        seconds = [each.whole for each in launches.taken["one layer", way]]
        return way.name, f"{median(seconds):.2f} s", f"{min(seconds):.2f} s"

    title = "Under debugpy, from launch to end of a program that calls one layer"
    return Table(title, ("contender", "median", "fastest"), tuple(map(row, ways)))


def _run(arguments: list[str]) -> float:
    began = time.perf_counter()
    command = [sys.executable, str(PROGRAM), *arguments]
    subprocess.run(command, env={**os.environ, **ENVIRONMENT}, check=True)
    return time.perf_counter() - began


def _debug(way: Way, how: Launch) -> float:
    lines = PROGRAM.read_text(encoding="utf-8").splitlines()
    marks = {"never": next(n for n, line in enumerate(lines, 1) if line.endswith("# @never"))}
    began = time.perf_counter()
    with launch(Script(PROGRAM, marks), how) as session:
        if way.breakpoint:
            session.break_at("never")
        session.go()
        ended = session.end()
        whole = time.perf_counter() - began
    if ended.exit_code != 0:
        raise AssertionError(ended)
    return whole


def _launch_with_us(
    way: Way, arguments: list[str], session: str, opened: Mapping[str, Any]
) -> Launch:
    """As the extension starts a program."""
    assert way.debugpy is not None
    address = SessionAddress(session, opened["port"], opened["token"])
    ours = {"PYTHONPATH": str(BACKEND), VARIABLE: write_address(address)}
    rules = [{"path": f"{BACKEND}/**", "include": False}]
    return Launch(way.debugpy, {**ENVIRONMENT, **ours}, rules, arguments=arguments)
