"""Whether another process still lives, and whether this one gets on.

Each rank says who it is once, and how often it has beaten again and again. A process of the same
machine that has ended is missed at once, one of another machine when its beats stay away. No clocks
are compared: what counts is when a beat was *seen* to have changed.
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
    """How long to wait for what, in seconds."""

    absent: float = 10.0
    """for a rank that has not said anything at all: it may not be tracing"""
    silent: float = 30.0
    """for the next beat of a rank, which may be swapping or stopped; it can come back"""
    still: float = 120.0
    """at the end, for a rank that stands at one place: it may be waiting for rank 0 there"""
    stuck: float = 60.0
    """for the store, which may be on a machine that is gone"""
    last_words: float = 2.0
    """for what a process that has ended had written last, which may be on its way"""
    beat: float = 1.0
    """between two beats"""
    look: float = 0.2
    """between two looks at what has come"""


@dataclass(frozen=True, slots=True)
class RankProcess:
    """Which process of which machine. The place is empty where processes cannot be looked up."""

    place: str
    pid: int
    started: str

    @classmethod
    def this(cls) -> RankProcess:
        """The one that asks."""
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
        """Whether it ran beside this process, and does so no more."""
        if not self.place or self.place != here.place:
            return False
        state, started = _state_and_start(self.pid)
        # A zombie has ended, but for its parent; a number can be given to a process anew.
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
        """The thread that matters from now on."""
        self._thread = thread
        self._place = None

    def look(self) -> tuple[float, str]:
        """For how many seconds, and the line, as `train.py:33`."""
        frame = sys._current_frames().get(self._thread)
        now = time.monotonic()
        place = (id(frame), frame.f_lasti) if frame is not None else None
        if place != self._place:
            self._place, self._since = place, now
        if frame is None:
            return 0.0, ""
        where = f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
        return now - self._since, where
