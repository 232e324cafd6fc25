"""What is said on stderr while a recording goes on, and when."""

from __future__ import annotations

import io

import pytest

from shapetrace.cli.progress import Progress


class Screen(io.StringIO):
    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    def new(self) -> str:
        """What was written since this was last asked."""
        text = self.getvalue()
        self.seek(0)
        self.truncate()
        return text


class Recording:
    """A recording with a clock of its own, so that nothing here takes time."""

    def __init__(self, screen: Screen | None, file: str | None = None) -> None:
        self.now = 100.0
        self.counts = (0, 0)
        self.is_complete = False
        self.progress = Progress(
            screen, lambda: self.counts, lambda: self.is_complete, file, lambda: self.now
        )

    def at(self, seconds: float, ops: int, passes: int) -> float | None:
        self.now = 100.0 + seconds
        self.counts = (ops, passes)
        return self.progress.step()


def test_one_line_on_a_terminal_is_written_over() -> None:
    screen = Screen(is_terminal=True)
    recording = Recording(screen)
    assert recording.at(0, 1, 0) == 1.0
    assert recording.at(1, 900, 2) == 1.0
    assert screen.new() == ""
    recording.at(2, 1234567, 3000)
    long = "shapetrace: recording: 3,000 forward passes, 1,234,567 ops, 2 s"
    assert screen.new() == "\r" + long
    recording.at(3, 1, 1)
    short = "shapetrace: recording: 1 forward pass, 1 op, 3 s"
    assert screen.new() == "\r" + short + " " * (len(long) - len(short))
    recording.progress.clear()
    assert screen.new() == "\r" + " " * len(short) + "\r"
    recording.progress.clear()
    assert screen.new() == ""


def test_a_log_gets_a_line_now_and_then() -> None:
    screen = Screen(is_terminal=False)
    recording = Recording(screen)
    for second in range(24):
        recording.at(second, second + 1, 1)
    recording.progress.clear()
    assert screen.new() == (
        "shapetrace: recording: 1 forward pass, 3 ops, 2 s\n"
        "shapetrace: recording: 1 forward pass, 13 ops, 12 s\n"
        "shapetrace: recording: 1 forward pass, 23 ops, 22 s\n"
    )


def test_nothing_is_said_before_the_first_op() -> None:
    screen = Screen(is_terminal=False)
    recording = Recording(screen)
    for second in range(60):
        recording.at(second, 0, 0)
    recording.at(60, 5, 0)
    recording.at(61, 6, 0)
    assert screen.new() == "shapetrace: recording: 0 forward passes, 6 ops, 2 s\n"


@pytest.mark.parametrize(("file", "written"), [(None, ""), ("run.json", ", written to run.json")])
def test_a_program_that_goes_on_is_told_so_once(file: str | None, written: str) -> None:
    screen = Screen(is_terminal=False)
    recording = Recording(screen, file)
    recording.at(0, 10, 0)
    recording.is_complete = True
    assert recording.at(1, 33, 1) == 1.0
    assert recording.at(2, 33, 1) == 1.0
    assert screen.new() == ""
    assert recording.at(3, 33, 1) is None
    assert screen.new() == (
        f"shapetrace: recorded 1 forward pass (33 ops){written}; "
        "the program runs on, Ctrl-C ends it and shows the trace\n"
    )


def test_the_line_is_taken_off_the_terminal_when_recording_is_over() -> None:
    screen = Screen(is_terminal=True)
    recording = Recording(screen)
    recording.at(2, 1, 0)
    shown = screen.new()
    recording.is_complete = True
    recording.at(3, 1, 1)
    assert screen.new() == "\r" + " " * (len(shown) - 1) + "\r"


def closed_screen() -> Screen:
    screen = Screen(is_terminal=True)
    screen.close()
    return screen


@pytest.mark.parametrize("stream", [None, closed_screen()], ids=["none", "closed"])
def test_nobody_is_looking(stream: Screen | None) -> None:
    recording = Recording(stream)
    assert recording.at(5, 1, 1) == 1.0
    recording.progress.clear()
