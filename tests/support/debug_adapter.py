"""One connection of the Debug Adapter Protocol, and the debug adapter's process.

Every message that comes is kept, so that a test looks back as well as forward, and so that a wait
that fails can say what was exchanged before.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

Message = dict[str, Any]
Found = TypeVar("Found")

PATIENCE = 120.0
"""Seconds that anything may take; importing torch under a trace function takes the longest."""
_SHOWN = 25
_LONGEST_SHOWN = 400


class RequestFailed(Exception):
    """The adapter refused a request."""


class Connection:
    """Sends requests, answers none, and keeps every message that comes."""

    def __init__(self, reader: BinaryIO, writer: BinaryIO) -> None:
        self.messages: list[Message] = []
        """The received messages, in order."""
        self.closed = False
        self._transcript: list[str] = []
        self._arrived = threading.Condition()
        self._sequence = 0
        self._reader = reader
        self._writer = writer
        self._link: socket.socket | None = None
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    @classmethod
    def to(cls, host: str, port: int) -> Connection:
        """A connection to an adapter that listens, as it does for subprocesses."""
        with socket.create_connection((host, port), timeout=PATIENCE) as link:
            link.settimeout(None)
            connection = cls(link.makefile("rb"), link.makefile("wb"))
            connection._link = link.dup()
            return connection

    def send(self, command: str, arguments: Mapping[str, Any] | None = None) -> int:
        """Send a request and do not wait for its response; returns its number."""
        with self._arrived:
            self._sequence += 1
            number = self._sequence
        message = {
            "seq": number,
            "type": "request",
            "command": command,
            "arguments": dict(arguments or {}),
        }
        self._note("→", message)
        body = json.dumps(message).encode()
        self._writer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._writer.flush()
        return number

    def response(self, number: int, seconds: float = PATIENCE) -> dict[str, Any]:
        """The body of the response to a request."""

        def answers(message: Message) -> Message | None:
            is_response = message["type"] == "response" and message["request_seq"] == number
            return message if is_response else None

        message = self.wait_for(answers, f"the response to request {number}", seconds=seconds)
        if not message["success"]:
            raise RequestFailed(message.get("message", "no reason given"))
        body: dict[str, Any] = message.get("body") or {}
        return body

    def request(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Send a request and return the body of its response."""
        return self.response(self.send(command, arguments))

    def wait_for(
        self,
        choose: Callable[[Message], Found | None],
        what: str,
        start: int = 0,
        seconds: float = PATIENCE,
    ) -> Found:
        """What ``choose`` makes of the first message from ``start`` on that it does not refuse."""
        deadline = time.monotonic() + seconds
        with self._arrived:
            while True:
                while start < len(self.messages):
                    found = choose(self.messages[start])
                    if found is not None:
                        return found
                    start += 1
                left = deadline - time.monotonic()
                if left <= 0 or self.closed:
                    why = "the connection was closed" if self.closed else f"{seconds:g} s passed"
                    raise AssertionError(f"waited for {what}; {why}\n{self.transcript()}")
                self._arrived.wait(left)

    def event(self, name: str, start: int = 0, seconds: float = PATIENCE) -> dict[str, Any]:
        """The body of the first event of this name from a place among the messages on."""

        def is_it(message: Message) -> dict[str, Any] | None:
            matches = message["type"] == "event" and message["event"] == name
            return (message.get("body") or {}) if matches else None

        return self.wait_for(is_it, f"the event {name!r}", start, seconds)

    def transcript(self) -> str:
        """The messages exchanged last, one on a line, each cut."""
        shown = self._transcript[-_SHOWN:]
        return "\n".join(["the last messages were:", *shown])

    def close(self) -> None:
        """Hang up."""
        try:
            self._writer.close()
        except OSError:
            pass  # the other end was faster
        if self._link is not None:
            with self._link, suppress(OSError):
                self._link.shutdown(socket.SHUT_RDWR)  # or else its reader waits for the adapter
        self._thread.join(PATIENCE)

    def _read(self) -> None:
        try:
            while True:
                length = 0
                while line := self._reader.readline().strip():
                    name, _, value = line.partition(b":")
                    if name.lower() == b"content-length":
                        length = int(value)
                if not length:
                    break
                message = json.loads(self._reader.read(length))
                self._note("←", message)
                with self._arrived:
                    self.messages.append(message)
                    self._arrived.notify_all()
        except (OSError, ValueError):
            pass  # it broke off in the middle of a message
        finally:
            with self._arrived:
                self.closed = True
                self._arrived.notify_all()
            self._reader.close()

    def _note(self, direction: str, message: Message) -> None:
        self._transcript.append(f"{direction} {json.dumps(message)}"[:_LONGEST_SHOWN])


def installed_debugpy() -> Path:
    """The folder of the debugpy that is installed here."""
    spec = find_spec("debugpy")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def bundled_debugpy() -> Path:
    """The folder of the debugpy that the extension brings, which has no part in C."""
    folder = Path(__file__).parents[2] / "python_libraries" / "debugpy" / "debugpy"
    assert folder.is_dir(), "`npm run package` fetches it"
    return folder


class Adapter:
    """A debug adapter of debugpy's that talks over its standard input and output."""

    def __init__(self, debugpy: Path, environment: Mapping[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(debugpy / "adapter")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(environment or {})},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._errors = self._process.stderr
        self.complaints = b""
        """The output on stderr."""
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        self.connection = Connection(self._process.stdout, self._process.stdin)  # type: ignore[arg-type]

    def close(self) -> None:
        """End it: by hanging up, or by force if it hangs on."""
        self.connection.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join(PATIENCE)
        self._errors.close()

    def _listen(self) -> None:
        self.complaints = self._errors.read()
