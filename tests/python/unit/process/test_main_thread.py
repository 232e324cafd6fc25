"""Having the main thread do something in between."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import FrameType

from shapetrace.process.main_thread import soon_on_main_thread


def test_the_main_thread_calls_with_the_frame_it_is_in() -> None:
    found: list[tuple[threading.Thread, str]] = []

    def call(frame: FrameType) -> None:
        found.append((threading.current_thread(), frame.f_code.co_filename))

    beside = threading.Thread(target=lambda: soon_on_main_thread(call))
    beside.start()
    while not found:
        pass  # One that waits for a lock would not call.
    beside.join()
    [(thread, _)] = found
    assert thread is threading.main_thread()


def test_an_error_in_it_is_nobodys() -> None:
    done = threading.Event()

    def fail(_: FrameType) -> None:
        done.set()
        raise ValueError("of no interest")

    assert soon_on_main_thread(fail)
    assert done.wait(30)


def test_many_are_called_in_order() -> None:
    calls: list[int] = []

    def noting(number: int) -> Callable[[FrameType], None]:
        return lambda _: calls.append(number)

    asked = [soon_on_main_thread(noting(number)) for number in range(10)]
    while len(calls) < 10:
        pass
    assert asked == [True] * 10
    assert calls == list(range(10))
