"""The bounded queue between the agent and its connection."""

from __future__ import annotations

from collections import deque

from shapetrace._exception_table import leaving_surely
from shapetrace._locks import holding
from shapetrace.transport.originals import System

MOST_BYTES = 32 * 1024 * 1024
MOST_FRAMES = 65_536
RESERVE = 256 * 1024
"""Bytes kept free for the messages that say how it goes, however many rows are waiting."""
RESERVED_FRAMES = 64


class Outbox:
    """Frames that wait to be sent. Frames that do not fit are dropped and counted at once."""

    dropped: int
    """How many frames did not fit."""

    def __init__(self, most_bytes: int = MOST_BYTES, most_frames: int = MOST_FRAMES) -> None:
        self.dropped = 0
        self._most_bytes = most_bytes
        self._most_frames = most_frames
        self._frames: deque[bytes] = deque()
        self._bytes = 0
        self._lock = System.lock()

    def has_room(self, important: bool = False) -> bool:
        """Return whether a frame would be taken now, unless it is a very large one."""
        return self._fits(0, important)

    @leaving_surely
    def put(self, frame: bytes, important: bool = False) -> bool:
        """Add a frame; False if there is no room. Important ones may use the reserve."""
        with holding(self._lock):
            if not self._fits(len(frame), important):
                self.dropped += 1
                return False
            self._frames.append(frame)
            self._bytes += len(frame)
            return True

    @leaving_surely
    def drop(self) -> None:
        """Count a frame that was not even made."""
        with holding(self._lock):
            self.dropped += 1

    @leaving_surely
    def take(self, about: int) -> bytes:
        """The oldest frames, together about so many bytes at most, but one at least; or nothing."""
        with holding(self._lock):
            taken: list[bytes] = []
            size = 0
            while self._frames and (not taken or size + len(self._frames[0]) <= about):
                frame = self._frames.popleft()
                taken.append(frame)
                size += len(frame)
            self._bytes -= size
        return taken[0] if len(taken) == 1 else b"".join(taken)

    @leaving_surely
    def clear(self) -> None:
        """Forget all frames; that does not count as dropping them."""
        with holding(self._lock):
            self._frames.clear()
            self._bytes = 0

    @property
    def waiting(self) -> int:
        """How many bytes wait."""
        return self._bytes

    @property
    def is_empty(self) -> bool:
        """Whether no frame waits."""
        return not self._frames

    def after_fork_in_child(self) -> None:
        """Begin anew: another thread may have held the lock when the process forked."""
        self._lock = System.lock()
        self._frames = deque()
        self._bytes = 0

    def _fits(self, length: int, important: bool) -> bool:
        reserve = RESERVE if important else 0
        return self._bytes + length <= self._most_bytes + reserve and len(
            self._frames
        ) < self._most_frames + (important and 64)
