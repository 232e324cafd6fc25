"""The thread of ours beside a program that forks and looks at its threads."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.python.e2e.cli.programs import Outcome, python

pytestmark = pytest.mark.e2e

BEGINNING = """
    import os, threading, time
    from shapetrace.cli.helper_thread import HelperThread

    steps = []
    called = threading.Semaphore(0)
    def step():
        steps.append(1)
        called.release()
        return 0.001

    def wait_for_more():
        for _ in range(len(steps) + 3):
            assert called.acquire(timeout=60)

    def threads_of_this_process():
        # A thread that has left the interpreter is gone a moment later.
        deadline = time.monotonic() + 60
        while (count := len(os.listdir("/proc/self/task"))) > 1 and time.monotonic() < deadline:
            pass
        return count

    attendant = HelperThread(step)
    attendant.start()
    wait_for_more()
"""


def outcome_of(body: str, folder: Path, flags: tuple[str, ...] = ("-W", "error")) -> Outcome:
    (folder / "script.py").write_text(textwrap.dedent(BEGINNING) + textwrap.dedent(body))
    return python("script.py", cwd=folder, flags=flags)


def test_it_is_no_thread_of_the_programs(tmp_path: Path) -> None:
    body = """
        print([thread.name for thread in threading.enumerate()])
        attendant.stop()
        count = len(steps)
        print(threads_of_this_process(), count == len(steps))
        attendant.stop()
    """
    assert outcome_of(body, tmp_path) == Outcome(0, "['MainThread']\n1 True\n", "")


def test_it_is_in_no_list_of_stacks_while_it_waits(tmp_path: Path) -> None:
    body = """
        import sys
        attendant.stop()
        asleep = HelperThread(lambda: 1000)
        asleep.start()
        deadline = time.monotonic() + 60
        while len(sys._current_frames()) > 1 and time.monotonic() < deadline:
            pass
        print(len(sys._current_frames()), len(os.listdir("/proc/self/task")) > 1)
        asleep.stop()
        print(threads_of_this_process())
    """
    assert outcome_of(body, tmp_path) == Outcome(0, "1 True\n1\n", "")


def test_a_step_that_fails_is_the_last(tmp_path: Path) -> None:
    body = """
        attendant.stop()
        def fail():
            called.release()
            raise SystemExit
        failing = HelperThread(fail)
        failing.start()
        assert called.acquire(timeout=60)
        failing.stop()
        print(threads_of_this_process())
    """
    assert outcome_of(body, tmp_path) == Outcome(0, "1\n", "")


def test_it_is_away_while_the_program_forks(tmp_path: Path) -> None:
    body = """
        for _ in range(3):
            child = os.fork()
            if child == 0:
                print("child", threads_of_this_process(), flush=True)
                grandchild = os.fork()
                if grandchild == 0:
                    os._exit(0)
                os.waitpid(grandchild, 0)
                os._exit(threads_of_this_process())
            print("left with", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
            wait_for_more()
        attendant.stop()
        if os.fork() == 0:
            os._exit(0)
        os.wait()
        print(threads_of_this_process())
    """
    assert outcome_of(body, tmp_path) == Outcome(0, "child 1\nleft with 1\n" * 3 + "1\n", "")


def test_it_ends_by_itself(tmp_path: Path) -> None:
    body = """
        attendant.stop()
        done = threading.Event()
        def once():
            done.set()
        second = HelperThread(once)
        second.start()
        done.wait()
        second.stop()
        if os.fork() == 0:
            os._exit(0)
        os.wait()
        print(threads_of_this_process())
    """
    assert outcome_of(body, tmp_path) == Outcome(0, "1\n", "")


def test_the_interpreter_does_not_wait_for_it(tmp_path: Path) -> None:
    assert outcome_of("print('end')", tmp_path) == Outcome(0, "end\n", "")
