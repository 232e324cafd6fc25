"""Tells whether another process lives, and whether this one makes progress.

Each rank publishes its identity once, and a heartbeat count repeatedly. The end of a process on the
same machine is noticed at once, on another machine by missing heartbeats. No clocks are compared:
what counts is when a new heartbeat was *seen*.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict, dataclass

from shapetrace._asynchronous import is_asynchronous


@dataclass(frozen=True, slots=True)
class Patience:
    """Time limits in seconds."""

    absent: float = 10.0
    """for the first note of a rank, which may not be tracing at all"""
    silent: float = 30.0
    """for the next heartbeat of a rank, which may be swapping or stopped, and may recover"""
    still: float = 120.0
    """at the end, for a rank that does not move: it may be waiting for rank 0"""
    stuck: float = 60.0
    """for the store, whose machine may be gone"""
    last_words: float = 2.0
    """for the last messages of a process that has ended"""
    beat: float = 1.0
    """between two heartbeats"""
    look: float = 0.2
    """between two checks for messages"""


@dataclass(frozen=True, slots=True)
class RankProcess:
    """Identifies a process and its machine. ``place`` is empty if processes cannot be looked up."""

    place: str
    pid: int
    started: str

    @classmethod
    def this(cls) -> RankProcess:
        """The calling process."""
        place = ""
        if sys.platform == "linux":
            try:
                with open("/proc/sys/kernel/random/boot_id") as file:
                    place = f"{file.read().strip()} {os.readlink('/proc/self/ns/pid')}"
            except OSError as error:
                if is_asynchronous(error):
                    raise
        return cls(place, os.getpid(), _state_and_start(os.getpid())[1])

    def to_json(self) -> str:
        """As text, for other processes."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: bytes) -> RankProcess:
        """From another process's text."""
        return cls(**json.loads(text))

    def is_known_to_have_ended(self, here: RankProcess) -> bool:
        """Return whether it ran on this process's machine and has ended."""
        if not self.place or self.place != here.place:
            return False
        state, started = _state_and_start(self.pid)
        # A zombie has ended, except for its parent; a process id can be used again.
        return state in ("", "Z", "X") or started != self.started


def _state_and_start(pid: int) -> tuple[str, str]:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return fields[0].decode(), fields[19].decode()
    except (OSError, IndexError) as error:
        if is_asynchronous(error):
            raise
        return "", ""


class Standing:
    """How long a thread has been at one instruction, as in a collective that waits for others."""

    def __init__(self) -> None:
        self._thread = 0
        self._place: tuple[int, int] | None = None
        self._since = time.monotonic()

    def watch(self, thread: int) -> None:
        """Watch this thread from now on."""
        self._thread = thread
        self._place = None

    def look(self) -> tuple[float, str]:
        """For how many seconds it has stood still, and the line, as `train.py:33`."""
        frame = sys._current_frames().get(self._thread)
        now = time.monotonic()
        place = (id(frame), frame.f_lasti) if frame is not None else None
        if place != self._place:
            self._place, self._since = place, now
        if frame is None:
            return 0.0, ""
        where = f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
        return now - self._since, where
