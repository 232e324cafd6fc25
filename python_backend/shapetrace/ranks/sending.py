"""The side of all ranks but 0 of a gathering: a thread sends rounds.

    chunk/<rank>/<number>   the bytes of messages, one after the other
    here/<rank>             which process this is
    state/<rank>            {"beat", "sent" (chunks), "finished", "still" (seconds), "where"}
    taken/<rank>            how many chunks rank 0 has taken

The bytes in the store are limited. The rest waits here, in memory, and the program never waits:
rank 0 may be waiting for this very rank, in a collective of the program's own.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from shapetrace._exception_table import leaving_surely
from shapetrace._locks import holding
from shapetrace.capture.results import ResultEntry, Round
from shapetrace.process.own_threads import own_thread
from shapetrace.ranks.liveness import Patience, RankProcess, Standing
from shapetrace.ranks.mail import CHUNK, Mail
from shapetrace.ranks.packing import pack

ROUND, PROBLEM = b"R", b"P"
"""Kinds of messages; a message begins with its length in 8 bytes and its kind."""

KEPT_FOR_NOBODY = 1 << 30
"""Bytes to keep before the first sign of rank 0, which may never come."""


Chunk = list[bytes | memoryview]
"""Pieces of messages that are sent together."""


def size(chunk: Chunk) -> int:
    """Its length in bytes."""
    return sum(map(len, chunk))


def chunks(pieces: Iterable[bytes | memoryview]) -> Iterator[Chunk]:
    """Split pieces into chunks of equal size (but the last), without copying them."""
    chunk, room = Chunk(), CHUNK
    for piece in pieces:
        view, start = memoryview(piece), 0
        while start < len(view):
            part = view[start : start + room]
            chunk.append(part)
            start, room = start + len(part), room - len(part)
            if not room:
                yield chunk
                chunk, room = Chunk(), CHUNK
    if chunk:
        yield chunk


def room_in_store(world_size: int) -> int:
    """Limit on one rank's bytes in the store, which is one machine's memory."""
    return max((256 << 20) // world_size, 2 << 20)


class Sender:
    """Sends rounds to rank 0 and never waits for it."""

    is_main = False

    def __init__(
        self,
        store: Any,
        prefix: str,
        rank: int,
        world_size: int,
        patience: Patience | None = None,
    ) -> None:
        self.rank = rank
        self.world_size = world_size
        self.problems: list[str] = []
        self._store, self._prefix = store, prefix
        self._patience = patience or Patience()
        self._room = room_in_store(world_size)
        self._told: set[str] = set()
        self._news = threading.Condition()
        """Guards the fields below; notified when the thread or its waiter has to check them."""
        self._outbox: deque[Chunk] = deque()
        self._outbox_bytes = 0
        self._rounds_until: deque[int] = deque()
        """For each round that has not arrived: the number of its last chunk."""
        self._chunks = 0
        self._sent = 0
        self._taken = 0
        self._in_store: deque[int] = deque()
        """Sizes of the chunks that were sent and not received yet."""
        self._main: RankProcess | None = None
        self._main_beat: object = None
        self._main_heard = self._begun = self._alive = time.monotonic()
        self._standing = Standing()
        self._standing.watch(threading.get_ident())
        self._closing = False
        self._lost = False
        """Rounds will not be received any more."""
        self._over = False
        self._here = RankProcess.this()
        self._thread = own_thread(self._run, "shapetrace-gathering")
        self._thread.start()

    @leaving_surely
    def hand_in(self, round: Round) -> list[dict[str, ResultEntry]]:
        """Pack a round and queue it for the thread."""
        self._standing.watch(threading.get_ident())
        if self._closing:
            self._say("rounds were handed in after the end of the gathering", "after")
        if self._over or self._closing or self._lost:
            return []
        pieces, problems = pack(round)
        with holding(self._news):
            for text, key in problems:
                if key not in self._told:
                    self._told.add(key)
                    self._post(PROBLEM, [text.encode()])
            self._post(ROUND, pieces)
            self._rounds_until.append(self._chunks)
            self._news.notify_all()
        return []

    @leaving_surely
    def finish(self) -> list[dict[str, ResultEntry]]:
        """Queue all that is left, without waiting for rank 0."""
        with holding(self._news):
            self._closing = True
            self._news.notify_all()
            while not self._over and time.monotonic() - self._alive < self._patience.stuck:
                self._news.wait(0.5)
            if not self._over:
                self._over = True
                self._lose("the process group's key-value store does not answer")
        self._thread.join(1.0)
        return []

    @leaving_surely
    def let_go(self) -> None:
        """End without waiting: the gathering is referred to no more."""
        with holding(self._news):
            self._closing = True
            self._news.notify_all()

    def _post(self, kind: bytes, pieces: list[bytes | memoryview]) -> None:
        length = size(pieces)
        for chunk in chunks([length.to_bytes(8, "big"), kind, *pieces]):
            self._outbox.append(chunk)
            self._chunks += 1
        self._outbox_bytes += 9 + length

    def wait(self, seconds: float) -> None:
        """Wait for the thread to end."""
        self._thread.join(seconds)

    def _run(self) -> None:
        try:
            mail = Mail(self._store, self._prefix)
            # State before identity: rank 0 reads the states of all known ranks at once.
            self._note_state(mail, 0)
            mail.note(f"here/{self.rank}", self._here.to_json())
            beat, beaten = 0, 0.0
            while True:
                sent = self._send(mail)
                now = self._alive = time.monotonic()
                if sent or now - beaten >= self._patience.beat:
                    beat, beaten = beat + 1, now
                    self._note_state(mail, beat)
                    self._look_at_main(mail)
                elif self._closing:
                    self._look_at_main(mail)
                with self._news:
                    if self._closing and not self._outbox and self._main_is_known(now):
                        break
                    if not sent:
                        self._news.wait(self._pause())
            # Written does not mean received; after the last note, rank 0 and the store may go.
            mail.confirm()
            self._note_state(mail, beat + 1, finished=True)
        except Exception as error:
            with self._news:
                reason = str(error).partition("\n")[0]
                self._lose(f"the process group's key-value store is gone ({reason})")
        finally:
            with self._news:
                self._over = True
                self._store = None
                self._news.notify_all()

    def _pause(self) -> float:
        if self._outbox:
            return 0.02  # The store is full for now.
        return 0.05 if self._closing else self._patience.beat

    def _send(self, mail: Mail) -> bool:
        """Send as much as there is room for; return whether there was any."""
        if self._in_store and (taken := mail.read(f"taken/{self.rank}")) is not None:
            with self._news:
                self._note_taken(int(taken))
        sent = False
        for _ in range(32):
            with self._news:
                if not self._outbox or not (self._has_room() or self._closing):
                    break
                chunk = b"".join(self._outbox.popleft())
                self._outbox_bytes -= len(chunk)
            mail.put(self.rank, self._sent, chunk)
            self._in_store.append(len(chunk))
            self._sent += 1
            sent = True
        return sent

    def _has_room(self) -> bool:
        in_store = sum(self._in_store)
        return not in_store or in_store + size(self._outbox[0]) <= self._room

    def _note_taken(self, taken: int) -> None:
        for _ in range(taken - self._taken):
            self._in_store.popleft()
        self._taken = taken
        while self._rounds_until and self._rounds_until[0] <= taken:
            self._rounds_until.popleft()

    def _note_state(self, mail: Mail, beat: int, finished: bool = False) -> None:
        still, where = self._standing.look()
        state = {
            "beat": beat,
            "sent": self._sent,
            "finished": finished,
            "still": still,
            "where": where,
        }
        mail.note(f"state/{self.rank}", json.dumps(state))

    def _look_at_main(self, mail: Mail) -> None:
        now = time.monotonic()
        if self._main is None and (here := mail.read("here/0")) is not None:
            self._main = RankProcess.from_json(here)
        if self._main is None:
            if self._outbox_bytes > KEPT_FOR_NOBODY:
                with self._news:
                    self._lose("rank 0 has not begun to gather")
            return
        state = json.loads(mail.read("state/0") or b"{}")
        if state.get("beat") != self._main_beat:
            self._main_beat, self._main_heard = state.get("beat"), now
        ended = self._main.is_known_to_have_ended(self._here)
        silent = self._closing and now - self._main_heard > self._patience.silent
        if state.get("finished") or ended or silent:
            reason = "had finished already" if state.get("finished") else "has died"
            taken = mail.read(f"taken/{self.rank}")
            with self._news:
                self._note_taken(int(taken or self._taken))
                self._lose(f"rank 0 {reason}")

    def _main_is_known(self, now: float) -> bool:
        """Return whether the thread may end: rank 0 was seen, or nothing was sent to it."""
        if self._main is not None or not self._sent:
            return True
        if now - self._begun < self._patience.absent:
            return False
        self._say(
            f"rank {self.rank}: rank 0 has not begun to gather yet; should it not trace this "
            f"model, what this rank has captured is lost",
            "absent",
        )
        return True

    def _lose(self, reason: str) -> None:
        """Give up the rounds that have not arrived."""
        rounds = len(self._rounds_until)
        missing = f"{rounds} round{'s' * (rounds > 1)} did not arrive" if rounds else ""
        later = "" if self._closing else "later ones are lost"
        if missing or later:
            consequence = ", and ".join(filter(None, [missing, later]))
            self._say(f"rank {self.rank}: {reason}; {consequence}", reason)
        self._lost = True
        self._outbox.clear()
        self._outbox_bytes = 0
        self._rounds_until.clear()

    def _say(self, text: str, key: str) -> None:
        if key not in self._told:
            self._told.add(key)
            self.problems.append(text)
