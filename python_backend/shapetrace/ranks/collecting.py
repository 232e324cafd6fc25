"""Rank 0's side of a gathering: a thread receives rounds and watches which ranks live.

    here/0, state/0    as of the others (`sending`); "finished" says that nothing more is taken

`round_order` puts together what has come. A rank is waited for while it may still send: not when it
has finished or died, has not been heard of for long, or has never said anything. Should it come
back, what it sends goes out with later rounds; nothing is lost as long as rank 0 gathers.
"""

from __future__ import annotations

import json
import threading
import time
from typing import Any

from shapetrace._exception_table import leaving_surely
from shapetrace._locks import holding
from shapetrace.capture.results import ResultEntry, Round
from shapetrace.process.own_threads import own_thread
from shapetrace.ranks.liveness import Patience, RankProcess
from shapetrace.ranks.mail import Mail
from shapetrace.ranks.packing import unpack
from shapetrace.ranks.round_order import RoundOrder
from shapetrace.ranks.sending import PROBLEM, room_in_store
from shapetrace.ranks.sizes import size_of

HELD = 256 << 20
"""Bytes of incomplete rounds above which they are released as they are."""


class Peer:
    """State of another rank, as rank 0 knows it."""

    def __init__(self, rank: int, now: float) -> None:
        self.rank = rank
        self.process: RankProcess | None = None
        self.beat = -1
        self.heard = self.lived = now
        self.sent = 0
        self.taken = 0
        self.finished = False
        self.still = 0.0
        self.where = ""
        self.is_silent = False
        self.is_over = False
        """Finished or dead, and all that it sent was taken."""
        self.received = bytearray()
        """Received chunks of messages that are not complete yet."""


class Collector:
    """Receives rounds from all ranks; waits for them only at the end."""

    rank = 0
    is_main = True

    def __init__(
        self,
        store: Any,
        prefix: str,
        world_size: int,
        patience: Patience | None = None,
        absent: frozenset[int] = frozenset(),
    ) -> None:
        self.world_size = world_size
        self.problems: list[str] = []
        self._store, self._prefix = store, prefix
        self._patience = patience or Patience()
        self._known_absent = absent
        self._room = room_in_store(world_size)
        self._told: set[str] = set()
        self._news = threading.Condition()
        """Guards the fields below; notified when the thread or its waiter has to check them."""
        self._order = RoundOrder(world_size)
        self._waited_for = set(range(1, world_size))
        self._begun = self._alive = time.monotonic()
        self._peers = [Peer(rank, self._begun) for rank in range(1, world_size)]
        self._closing_since: float | None = None
        self._over = False
        self._here = RankProcess.this()
        self._thread = own_thread(self._run, "shapetrace-gathering")
        self._thread.start()

    @property
    def absent(self) -> frozenset[int]:
        """The ranks that have not said anything."""
        return frozenset(peer.rank for peer in self._peers if peer.process is None)

    @leaving_surely
    def hand_in(self, round: Round) -> list[dict[str, ResultEntry]]:
        """Add a round of this rank; return the entries of all rounds that are complete."""
        with holding(self._news):
            if self._closing_since is not None:
                self._say("rounds were handed in after the end of the gathering", "after")
                return []
            self._order.add(round, size_of(round.entries))
            gathered = self._order.complete(self._waited_for)
            while self._order.held(0) > HELD:
                names = _ranks(self._order.behind(self._waited_for))
                self._say(f"{names} fallen far behind; rounds go out without", f"far {names}")
                gathered += self._order.force()
            return gathered

    @leaving_surely
    def finish(self) -> list[dict[str, ResultEntry]]:
        """Wait for ranks that may still send; return all entries that are left."""
        with holding(self._news):
            if self._closing_since is None:
                self._closing_since = time.monotonic()
            self._news.notify_all()
            while not self._over and time.monotonic() - self._alive < self._patience.stuck:
                self._news.wait(0.5)
            if not self._over:
                self._over = True
                self._say("the process group's key-value store does not answer", "store")
            elif self.absent and not {"store", "absent"} & self._told:
                self._say(f"{_ranks(sorted(self.absent))} not traced this model", "absent")
            gathered = self._order.rest()
        self._thread.join(1.0)
        return gathered

    @leaving_surely
    def let_go(self) -> None:
        """End without waiting: the gathering is referred to no more."""
        with holding(self._news):
            self._closing_since = float("-inf")
            self._news.notify_all()

    def wait(self, seconds: float) -> None:
        """Wait for the thread to end."""
        self._thread.join(seconds)

    def _run(self) -> None:
        try:
            mail = Mail(self._store, self._prefix)
            mail.note("here/0", self._here.to_json())
            beat, beaten = 0, 0.0
            while True:
                now = self._alive = time.monotonic()
                if now - beaten >= self._patience.beat:
                    beat, beaten = beat + 1, now
                    mail.note("state/0", json.dumps({"beat": beat, "finished": False}))
                took = self._look(mail)
                with self._news:
                    closing = self._closing_since
                    self._waited_for = {peer.rank for peer in self._peers if self._may_send(peer)}
                    if closing == float("-inf") or (closing is not None and not self._waited_for):
                        break
                    if not took:
                        self._news.wait(0.02 if closing is not None else self._patience.look)
            mail.note("state/0", json.dumps({"beat": beat + 1, "finished": True}))
            self._clean(mail)
            mail.confirm()
        except Exception as error:
            with self._news:
                reason = str(error).partition("\n")[0]
                self._say(
                    f"the process group's key-value store is gone ({reason}): what other ranks "
                    f"captured since is lost",
                    "store",
                )
        finally:
            with self._news:
                self._waited_for = set()
                self._over = True
                self._store = None
                self._news.notify_all()

    def _look(self, mail: Mail) -> bool:
        """Receive messages; return whether there were any."""
        took = False
        for peer in self._peers:
            if peer.process is None and (here := mail.read(f"here/{peer.rank}")) is not None:
                peer.process = RankProcess.from_json(here)
                peer.heard = time.monotonic()
        present = [peer for peer in self._peers if peer.process is not None and not peer.is_over]
        # Checked before its last messages are read, so that none can come in between.
        ended = {peer.rank for peer in present if self._has_ended(peer)}
        states = mail.read_all([f"state/{peer.rank}" for peer in present])
        for peer, state in zip(present, states, strict=True):
            self._read_state(peer, json.loads(state))
            took |= self._take(mail, peer)
            if peer.taken == peer.sent:
                self._see_its_end(peer, peer.rank in ended)
        return took

    def _has_ended(self, peer: Peer) -> bool:
        return peer.process is not None and peer.process.is_known_to_have_ended(self._here)

    def _see_its_end(self, peer: Peer, has_ended: bool) -> None:
        now = time.monotonic()
        if not has_ended:
            peer.lived = now
        if peer.finished:
            peer.is_over = True
        elif now - peer.lived >= self._patience.last_words:
            peer.is_over = True
            with self._news:
                newest = self._order.newest(peer.rank)
                self._say(f"rank {peer.rank} has died {newest}", f"dead {peer.rank}")

    def _read_state(self, peer: Peer, state: dict[str, Any]) -> None:
        if state["beat"] == peer.beat:
            return
        peer.beat, peer.heard = state["beat"], time.monotonic()
        peer.sent, peer.finished = state["sent"], state["finished"]
        peer.still, peer.where = state["still"], state["where"]

    def _take(self, mail: Mail, peer: Peer) -> bool:
        """Receive a rank's messages, but not much more than needed to continue."""
        taken = peer.taken
        while peer.taken < peer.sent:
            with self._news:
                if self._closing_since is None and self._order.held(peer.rank) > self._room:
                    break
            peer.received += mail.take(peer.rank, peer.taken)
            peer.taken += 1
            self._read_messages(peer)
            self._alive = time.monotonic()
            if peer.taken - taken >= 32:
                break
        if peer.taken == taken:
            return False
        mail.note(f"taken/{peer.rank}", str(peer.taken))
        return True

    def _read_messages(self, peer: Peer) -> None:
        while len(peer.received) >= 9:
            end = 9 + int.from_bytes(peer.received[:8], "big")
            if len(peer.received) < end:
                return
            # Nearly always there is one message, and nothing to copy.
            message, peer.received = peer.received, peer.received[end:]
            kind, body = message[8:9], memoryview(message)[9:end]
            if kind == PROBLEM:
                with self._news:
                    text = bytes(body).decode()
                    self._say(text, text)
                continue
            round, problems = unpack(body)
            with self._news:
                for text, key in problems:
                    self._say(text, key)
                self._order.add(round, len(body))
                for rank in self._order.late:
                    self._say(f"rank {rank} was late: values of it are in later rounds", f"l{rank}")

    def _may_send(self, peer: Peer) -> bool:
        """Return whether a rank may still send what belongs to the rounds that are held."""
        now, patience = time.monotonic(), self._patience
        if peer.is_over:
            return False
        if peer.process is None:
            waited = now - self._begun >= patience.absent
            return not waited and peer.rank not in self._known_absent
        if now - peer.heard >= patience.silent:
            if not peer.is_silent:
                self._say(
                    f"rank {peer.rank} has not been heard of for {patience.silent:.0f} s, "
                    f"{self._order.newest(peer.rank)}",
                    f"silent {peer.rank}",
                )
            peer.is_silent = True
            return False
        peer.is_silent = False
        closing = self._closing_since
        if closing is None or now - closing < patience.still or peer.still < patience.still:
            return True
        self._say(
            f"rank {peer.rank} has stood at {peer.where} for {peer.still:.0f} s while rank 0 "
            f"waited for the end of its trace; what it captures from then on is lost",
            f"still {peer.rank}",
        )
        return False

    def _clean(self, mail: Mail) -> None:
        for peer in self._peers:
            if peer.is_over:
                for key in ("here", "state", "taken"):
                    mail.remove(f"{key}/{peer.rank}")

    def _say(self, text: str, key: str) -> None:
        if key not in self._told:
            self._told.add(key)
            self.problems.append(text)


def _ranks(ranks: list[int]) -> str:
    if len(ranks) == 1:
        return f"rank {ranks[0]} has"
    return f"ranks {', '.join(map(str, ranks))} have"
