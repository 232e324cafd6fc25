"""What is given out at a program's end is not cut off by what the program's handlers raise."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from threading import Thread

import pytest

from shapetrace.process.main_thread import soon_on_main_thread
from shapetrace.process.undisturbed import undisturbed
from tests.support.interrupting import SIGNAL, Interrupter, signals


class Late(Exception):
    """What the program's handler raises."""


calls: list[int] = []


def raise_late(signum: int, frame: object) -> None:
    calls.append(signum)
    raise Late


@pytest.fixture(autouse=True)
def own_handler() -> Iterator[None]:
    calls.clear()
    before = signal.signal(SIGNAL, raise_late)
    yield
    signal.signal(SIGNAL, before)


def test_handlers_run_and_raise_nothing() -> None:
    def give_out() -> str:
        signal.raise_signal(SIGNAL)
        return "given out"

    assert undisturbed(give_out) == "given out"
    assert calls == [SIGNAL]
    assert signal.getsignal(SIGNAL) is raise_late


def test_what_is_raised_before_they_are_replaced_keeps_nothing_back() -> None:
    given_out: list[int] = []
    interrupter = Interrupter(signals(), lambda code: code.co_name == "_are_replaced")

    def work() -> None:
        undisturbed(lambda: given_out.append(1))

    interrupter.run(work)
    count = interrupter.count
    assert count > 100
    for at in range(1, count):
        given_out.clear()
        interrupter.run(work, at)
        assert given_out == [1], interrupter.place
        assert signal.getsignal(SIGNAL) is raise_late, interrupter.place
    assert len(calls) > 100


def test_ctrl_c_still_interrupts() -> None:
    # It is ignored in what a shell runs in the background.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            undisturbed(lambda: signal.raise_signal(signal.SIGINT))
    finally:
        signal.signal(signal.SIGINT, before)
    assert signal.getsignal(SIGNAL) is raise_late


def test_a_handler_that_is_set_meanwhile_stays() -> None:
    undisturbed(lambda: signal.signal(SIGNAL, signal.SIG_IGN))
    assert signal.getsignal(SIGNAL) is signal.SIG_IGN


def test_other_threads_have_no_handlers() -> None:
    done: list[object] = []
    thread = Thread(target=lambda: done.append(undisturbed(lambda: signal.getsignal(SIGNAL))))
    thread.start()
    thread.join()
    assert done == [raise_late]


def test_what_comes_in_between_on_the_main_thread_is_not_lost() -> None:
    seen: list[object] = []

    def work() -> None:
        assert soon_on_main_thread(seen.append)
        while not seen:
            pass

    interrupter = Interrupter(signals(), lambda code: code.co_name in ("_call_next", "work"))
    interrupter.run(work)
    count, came = interrupter.count, 0
    for at in range(1, count + 1):
        seen.clear()
        try:
            interrupter.run(work, at)
            assert not interrupter.place, f"lost at {interrupter.place}"
        except Late:
            came += 1
    assert came
