from __future__ import annotations

import sys
import threading

from hypothesis import given
from hypothesis import strategies as st

from shapetrace.transport.outbox import RESERVE, Outbox


def test_frames_come_out_as_they_went_in() -> None:
    outbox = Outbox()
    for frame in (b"one", b"two", b"three"):
        assert outbox.put(frame)
    assert outbox.waiting == 11
    assert outbox.take(6) == b"onetwo"
    assert outbox.take(1) == b"three"
    assert outbox.take(1) == b""
    assert outbox.is_empty
    assert outbox.waiting == 0


def test_bytes_are_bounded() -> None:
    outbox = Outbox(most_bytes=10)
    assert outbox.put(b"x" * 10)
    assert not outbox.put(b"x")
    assert outbox.dropped == 1
    outbox.take(1)
    assert outbox.put(b"x")


def test_frames_are_bounded() -> None:
    outbox = Outbox(most_frames=2)
    assert [outbox.put(b"") for _ in range(3)] == [True, True, False]
    assert not outbox.has_room()


def test_important_frames_may_use_the_reserve_and_no_more() -> None:
    outbox = Outbox(most_bytes=10)
    outbox.put(b"x" * 10)
    assert outbox.has_room(important=True)
    assert outbox.put(b"x" * RESERVE, important=True)
    assert not outbox.put(b"x", important=True)


def test_forgetting_is_not_dropping() -> None:
    outbox = Outbox()
    outbox.put(b"x")
    outbox.clear()
    assert (outbox.waiting, outbox.dropped, outbox.take(1)) == (0, 0, b"")


def test_a_lock_that_was_held_when_the_process_forked_is_made_anew() -> None:
    outbox = Outbox()
    outbox.put(b"the parent's")
    outbox._lock.acquire()
    outbox.after_fork_in_child()
    assert outbox.put(b"the child's")
    assert outbox.take(100) == b"the child's"


@given(st.lists(st.binary(max_size=9) | st.integers(0, 20), max_size=40))
def test_never_more_than_it_may_hold_and_nothing_twice(actions: list[bytes | int]) -> None:
    outbox = Outbox(most_bytes=30, most_frames=6)
    expected, received = b"", b""
    for action in actions:
        if isinstance(action, bytes):
            expected += action if outbox.put(action) else b""
        else:
            received += outbox.take(action)
        assert outbox.waiting == len(expected) - len(received) <= 30
    while not outbox.is_empty:
        received += outbox.take(100)
    assert received == expected


def test_two_threads_lose_nothing() -> None:
    outbox = Outbox(most_bytes=5000)
    received = bytearray()
    done = threading.Event()

    def read() -> None:
        while not done.is_set() or not outbox.is_empty:
            received.extend(outbox.take(64))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        reader = threading.Thread(target=read)
        reader.start()
        sent = b"".join(frame for number in range(20_000) if outbox.put(frame := b"%d," % number))
        done.set()
        reader.join()
    finally:
        sys.setswitchinterval(interval)
    assert received == sent
    assert outbox.waiting == 0
    assert sent.count(b",") + outbox.dropped == 20_000
