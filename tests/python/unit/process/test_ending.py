"""The steps by which ``--stop-after-trace`` ends a program that does not end."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from shapetrace.process.ending import ProgramEnding


class Process:
    """Notes what is done to it, with a clock of its own."""

    def __init__(self, can_be_interrupted: bool = True) -> None:
        self.now = 0.0
        self.done: list[str] = []
        self._can_be_interrupted = can_be_interrupted
        self.ending = ProgramEnding(
            self._interrupt, lambda: self.done.append("end"), lambda: self.now
        )

    def _interrupt(self) -> bool:
        self.done.append("interrupt")
        return self._can_be_interrupted

    def at(self, seconds: float) -> list[str]:
        self.now = seconds
        self.done.clear()
        self.ending.step()
        return self.done


def swallow(function: Callable[[], object]) -> type[BaseException] | None:
    try:
        function()
    except BaseException as error:
        return type(error)
    return None


def test_an_exception_on_its_way_is_given_time() -> None:
    process = Process()
    with pytest.raises(SystemExit) as end:
        process.ending.raise_in_program()
    # Held here, as a finally block that is being run holds it.
    assert end.value.code == 0
    assert process.ending.is_asked_for
    assert process.at(30) == []
    assert not process.ending.has_interrupted
    assert process.at(60) == ["end"]


def test_a_swallowed_exception_is_followed_by_an_interrupt_and_the_end() -> None:
    process = Process()
    assert swallow(process.ending.raise_in_program) is SystemExit
    assert process.at(0.2) == ["interrupt"]
    assert process.ending.has_interrupted
    assert process.at(0.4) == []
    assert process.at(5.1) == []
    assert process.at(5.2) == ["end"]


def test_a_program_deaf_to_interrupts_is_ended_at_once() -> None:
    process = Process(can_be_interrupted=False)
    swallow(process.ending.raise_in_program)
    assert process.at(0.2) == ["interrupt", "end"]
    assert not process.ending.has_interrupted


def test_exit_handlers_and_other_threads_are_given_time() -> None:
    process = Process()
    swallow(process.ending.raise_in_program)
    process.now = 3.0
    process.ending.main_is_over()
    assert process.at(62) == []
    assert process.at(63) == ["end"]


def test_another_thread_ends_silently_and_the_main_one_is_interrupted() -> None:
    process = Process()
    raised: list[type[BaseException] | None] = []
    thread = threading.Thread(
        target=lambda: raised.append(swallow(process.ending.raise_in_program))
    )
    thread.start()
    thread.join()
    # Not one derived from it: threading shows those.
    assert raised == [SystemExit]
    assert process.at(0.9) == []
    assert process.at(1.0) == ["interrupt"]
    assert process.at(6.0) == ["end"]
