"""Debugs a program as an editor would: breakpoints, steps, stacks, variables, expressions.

script = Script.write('''
    x = torch.zeros(2)  # @made
    y = x * 2
''', directory)
with launch(script) as session:
    session.break_at("made")
    session.go()
    stop = session.stop()
    assert str(stop.top) == "<module> @made"
    stop = session.step("stepIn")
    session.resume()
    assert session.end().exit_code == 0
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import Any

from tests.support.debug_adapter import (
    PATIENCE,
    Adapter,
    Connection,
    Message,
    RequestFailed,
    installed_debugpy,
)

__all__ = ["Breakpoint", "DebugSession", "Ended", "Place", "RequestFailed", "Script", "Stop"]

_MARK = re.compile(r"#.*?@(\w+)")


@dataclass(frozen=True)
class Script:
    """A program in a file, some lines of which have a name: ``# @name``."""

    path: Path
    marks: Mapping[str, int]

    @classmethod
    def write(cls, text: str, directory: Path, name: str = "program.py") -> Script:
        """Put a program's text into a file."""
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = dedent(text).removeprefix("\n").splitlines(keepends=True)
        path.write_text("".join(lines), encoding="utf-8")
        marks = {
            mark: number for number, line in enumerate(lines, 1) for mark in _MARK.findall(line)
        }
        return cls(path, marks)

    def line(self, place: str | int) -> str:
        """How a line is called: by its mark, or else by its number."""
        names = [name for name, number in self.marks.items() if number == place]
        return f"@{names[0]}" if names else str(place)


@dataclass(frozen=True)
class Breakpoint:
    """The options of a breakpoint besides its line."""

    condition: str | None = None
    hits: str | None = None
    log: str | None = None

    def described(self, line: int) -> dict[str, Any]:
        """As the protocol has it."""
        fields = {"condition": self.condition, "hitCondition": self.hits, "logMessage": self.log}
        return {"line": line} | {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True)
class Place:
    """A frame of a stopped thread, outermost last."""

    number: int
    """Of the frame, for requests."""
    function: str
    file: str
    line: int
    text: str
    """Function, file and line with what differs from run to run taken out."""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Stop:
    """A thread that has stopped."""

    reason: str
    thread: int
    frames: tuple[Place, ...]
    description: str = ""
    """The message of an exception."""

    @property
    def top(self) -> Place:
        """The frame it stopped in."""
        return self.frames[0]

    def __str__(self) -> str:
        return f"{self.reason}: {' < '.join(map(str, self.frames))}"


@dataclass(frozen=True)
class Ended:
    """The end of a program: its exit code and its output."""

    exit_code: int | None
    stdout: str
    stderr: str
    console: str
    """The debugger's own output, log points included."""


class DebugSession:
    """One debugged process."""

    def __init__(self, connection: Connection, script: Script) -> None:
        self.connection = connection
        self.script = script
        self._read = 0
        """Messages before this one have been looked at for stops."""
        self._breakpoints: dict[Path, list[dict[str, Any]]] = {}

    # Before the program runs

    def start(self, request: str, arguments: Mapping[str, Any]) -> None:
        """Say hello, ask for the program, and wait until it can be told about breakpoints."""
        self.connection.request(
            "initialize",
            clientID="vscode",
            adapterID="debugpy",
            pathFormat="path",
            linesStartAt1=True,
            columnsStartAt1=True,
            supportsVariableType=True,
            supportsRunInTerminalRequest=False,
            supportsStartDebuggingRequest=False,
        )
        self._started = self.connection.send(request, arguments)

        def is_ready(message: Message) -> bool | None:
            if message["type"] == "response" and message["request_seq"] == self._started:
                return False if not message["success"] else None
            return True if message.get("event") == "initialized" else None

        if not self.connection.wait_for(is_ready, "the event 'initialized'"):
            self.connection.response(self._started)

    def break_at(
        self, *marks: str, script: Script | None = None, **details: str | None
    ) -> list[dict[str, Any]]:
        """Add breakpoints at lines, which stay; returns what the adapter made of all in the file.

        Details are those of a ``Breakpoint``.
        """
        script = script or self.script
        points = self._breakpoints.setdefault(script.path, [])
        points += [Breakpoint(**details).described(script.marks[mark]) for mark in marks]
        return self._send_breakpoints(script.path)

    def clear_breakpoints(self, script: Script | None = None) -> None:
        """Take all breakpoints out of a file."""
        path = (script or self.script).path
        self._breakpoints[path] = []
        self._send_breakpoints(path)

    def _send_breakpoints(self, path: Path) -> list[dict[str, Any]]:
        answer = self.connection.request(
            "setBreakpoints", source={"path": str(path)}, breakpoints=self._breakpoints[path]
        )
        answered: list[dict[str, Any]] = answer["breakpoints"]
        return answered

    def break_at_functions(self, *names: str) -> None:
        """Stop where functions of these names are entered."""
        self.connection.request(
            "setFunctionBreakpoints", breakpoints=[{"name": name} for name in names]
        )

    def break_on_exceptions(self, *filters: str) -> None:
        """Stop at exceptions: ``raised``, ``uncaught``, ``userUnhandled``."""
        self.connection.request("setExceptionBreakpoints", filters=list(filters))

    def go(self) -> None:
        """Let the program begin."""
        self.connection.request("configurationDone")
        self.connection.response(self._started)

    # While it runs

    def stop(self, seconds: float = PATIENCE) -> Stop:
        """Wait for a stop, which must come before the program's end."""
        stop = self.stop_or_end(seconds)
        if stop is None:
            raise AssertionError(f"the program ended\n{self.connection.transcript()}")
        return stop

    def stop_or_end(self, seconds: float = PATIENCE) -> Stop | None:
        """Wait for a stop, or for the program's end."""
        messages = self.connection.messages

        def is_either(message: Message) -> Message | None:
            return message if message.get("event") in ("stopped", "terminated") else None

        found = self.connection.wait_for(is_either, "a stop or the end", self._read, seconds)
        self._read = next(i for i, each in enumerate(messages) if each is found) + 1
        if found["event"] == "terminated":
            self._read -= 1  # the end for every further caller
            return None
        body = found["body"]
        description = str(body.get("text") or "") if body["reason"] == "exception" else ""
        return Stop(body["reason"], body["threadId"], self.stack(body["threadId"]), description)

    def stack(self, thread: int) -> tuple[Place, ...]:
        """The frames of a stopped thread, innermost first."""
        answer = self.connection.request("stackTrace", threadId=thread)
        return tuple(self._place(frame) for frame in answer["stackFrames"])

    def _place(self, frame: dict[str, Any]) -> Place:
        path = str((frame.get("source") or {}).get("path") or "?")
        line = frame["line"]
        if path == str(self.script.path):
            where = self.script.line(line)
        else:
            where = f"{'/'.join(Path(path).parts[-2:])}:{line}"
        return Place(frame["id"], frame["name"], path, line, f"{frame['name']} {where}")

    def resume(self, thread: int | None = None) -> None:
        """Let the program go on."""
        self.connection.request("continue", threadId=thread or self._thread())

    def step(self, how: str, thread: int | None = None) -> Stop | None:
        """Make a step, ``stepIn``, ``next`` or ``stepOut``; None where the program ended by it."""
        self.connection.request(how, threadId=thread or self._thread())
        return self.stop_or_end()

    def pause(self) -> Stop:
        """Stop the program wherever it is."""
        self.connection.request("pause", threadId=self._thread())
        return self.stop()

    def _thread(self) -> int:
        return int(self.connection.request("threads")["threads"][0]["id"])

    def evaluate(self, expression: str, frame: Place | None = None, context: str = "repl") -> str:
        """The value of an expression, as the debugger shows it."""
        where = {} if frame is None else {"frameId": frame.number}
        answer = self.connection.request(
            "evaluate", expression=expression, context=context, **where
        )
        return str(answer["result"])

    def variables(self, frame: Place, scope: str = "Locals") -> dict[str, str]:
        """The content of the Variables pane for a frame."""
        reference = self.scope(frame, scope)
        return {each["name"]: each["value"] for each in self.children(reference)}

    def children(self, reference: int) -> list[dict[str, Any]]:
        """The children of an entry of the Variables pane."""
        answer = self.connection.request("variables", variablesReference=reference)
        found: list[dict[str, Any]] = answer["variables"]
        return found

    def set_variable(self, frame: Place, name: str, value: str) -> str:
        """Give a local another value; returns what it is then."""
        answer = self.connection.request(
            "setVariable", variablesReference=self.scope(frame, "Locals"), name=name, value=value
        )
        return str(answer["value"])

    def scope(self, frame: Place, name: str) -> int:
        """The number to ask for the variables of a scope by."""
        scopes = self.connection.request("scopes", frameId=frame.number)["scopes"]
        return int(next(each["variablesReference"] for each in scopes if each["name"] == name))

    # Its end

    def output(self, *categories: str) -> str:
        """The output so far to ``stdout`` or ``stderr``, or of the debugger to its ``console``."""
        return "".join(
            each["body"]["output"]
            for each in list(self.connection.messages)
            if each.get("event") == "output"
            and each["body"].get("category", "console") in categories
        )

    def wait_for_output(self, text: str, category: str = "stdout") -> None:
        """Wait until the program has written something."""

        def has_come(message: Message) -> bool | None:
            return True if text in self.output(category) else None

        self.connection.wait_for(has_come, f"{text!r} on {category}")

    def end(self, seconds: float = PATIENCE) -> Ended:
        """Wait for the program's end."""
        stop = self.stop_or_end(seconds)
        assert stop is None, f"stopped instead of ending: {stop}"
        codes = [
            each["body"]["exitCode"]
            for each in self.connection.messages
            if each.get("event") == "exited"
        ]
        return Ended(
            codes[0] if codes else None,
            self.output("stdout"),
            self.output("stderr"),
            self.output("console", "important"),
        )

    def disconnect(self, terminate: bool = True) -> None:
        """Leave, and by default end the program."""
        try:
            self.connection.request("disconnect", terminateDebuggee=terminate)
        except (AssertionError, OSError, RequestFailed):
            pass  # it has gone already

    @contextmanager
    def subprocesses(self, *marks: str) -> Iterator[list[DebugSession]]:
        """Debug every process that this one starts, as the editor does, with these breakpoints.

        Each has to be attended to: debugpy holds it until then.
        """
        found: list[DebugSession] = []
        over = threading.Event()
        waiters = [threading.Thread(target=self._attend, args=(found, over, marks), daemon=True)]
        waiters[0].start()
        try:
            yield found
        finally:
            over.set()
            waiters[0].join(PATIENCE)
            for session in found:
                # Until this request, the adapter keeps the connection of one that has ended.
                session.disconnect()
                session.connection.close()

    def _attend(
        self, found: list[DebugSession], over: threading.Event, marks: Sequence[str]
    ) -> None:
        """Attach to the children of all sessions, theirs included."""
        read: dict[DebugSession, int] = {}
        while not over.wait(0.02):
            for session in (self, *found):
                messages = session.connection.messages
                for message in messages[read.get(session, 0) : len(messages)]:
                    read[session] = read.get(session, 0) + 1
                    if message.get("event") == "debugpyAttach":
                        found.append(session._attach_to(message["body"], marks))

    def _attach_to(self, configuration: Mapping[str, Any], marks: Sequence[str]) -> DebugSession:
        connect = configuration["connect"]
        child = DebugSession(Connection.to(connect["host"], connect["port"]), self.script)
        child.start("attach", configuration)
        if marks:
            child.break_at(*marks)
        child.go()
        return child


@dataclass(frozen=True)
class Launch:
    """How a program is started."""

    debugpy: Path = field(default_factory=installed_debugpy)
    environment: Mapping[str, str | None] = field(default_factory=dict)
    rules: Sequence[Mapping[str, Any]] = ()
    just_my_code: bool = True
    python: Sequence[str] = (sys.executable,)
    arguments: Sequence[str] = ()
    more: Mapping[str, Any] = field(default_factory=dict)
    """Anything else that a launch configuration may say; None takes a key out."""

    def configuration(self, script: Script) -> dict[str, Any]:
        """The launch configuration for a program."""
        configuration = {
            "name": "test",
            "type": "debugpy",
            "request": "launch",
            "program": str(script.path),
            "args": list(self.arguments),
            "cwd": str(script.path.parent),
            "env": {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", **self.environment},
            "python": list(self.python),
            "console": "internalConsole",
            "justMyCode": self.just_my_code,
            "rules": [dict(rule) for rule in self.rules],
            "subProcess": False,
            **self.more,
        }
        return {key: value for key, value in configuration.items() if value is not None}


@contextmanager
def launch(script: Script, how: Launch | None = None) -> Iterator[DebugSession]:
    """Start a program under the debugger; it waits for ``go``."""
    how = how or Launch()
    adapter = Adapter(how.debugpy, {"PYTHONPATH": os.environ.get("PYTHONPATH", "")})
    session = DebugSession(adapter.connection, script)
    try:
        session.start("launch", how.configuration(script))
        yield session
    finally:
        if not adapter.connection.closed:
            session.disconnect()
        adapter.close()
