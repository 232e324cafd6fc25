"""What is shown at a stop, as the recorder says where that is: text in, text out.

A program stops where it calls ``stop()``; the frame of the function that calls it is focused.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from shapetrace.events.rows import RowReader
from shapetrace.events.stop import Stop
from shapetrace.recorder.debuggers import Debugger
from shapetrace.recorder.options import RecorderOptions
from shapetrace.recorder.session import Recorder
from shapetrace.recorder.standing import standing_of
from shapetrace.server.documents import Documents
from shapetrace.server.features.hover import hover
from shapetrace.server.features.inlay_hints import inlay_hints
from shapetrace.server.messages.settings import HintOptions
from shapetrace.server.pin_and_focus import PinAndFocus
from shapetrace.server.store import TraceStore
from shapetrace.server.view import DocumentView
from shapetrace.transport.framing import Message
from tests.python.unit.server.annotated import plain, with_hints, without_hints
from tests.python.unit.server.stops import scope_of
from tests.support.recorder import PRELUDE
from tests.support.rows import rows_of


class Stopped:
    """A program at one of its stops."""

    def __init__(self, path: Path, rows: list[Message], stop: Stop) -> None:
        self.store = TraceStore()
        self.store.open_process("session", "process")
        reader = RowReader()
        for message in rows:
            self.store.apply("process", reader.read(message))
        scopes = PinAndFocus(self.store)
        scopes.set_focus(scope_of(stop))
        document = Documents().open(path.as_uri(), path.read_text("utf-8"), 1)
        assert document is not None
        records = scopes.records(document.key)
        assert records is not None
        assert records.base.text is not None
        self.view = DocumentView(document, records, records.base.text)

    def text(self) -> str:
        """The program with its hints."""
        hints = inlay_hints(self.view, 0, 1_000_000, HintOptions())
        return with_hints(self.view.document.lines, hints).removeprefix(PRELUDE)

    def hover(self, place: str) -> str:
        """What is told of the place before the ``^`` in a piece of the program."""
        before, _, behind = place.partition("^")
        text = "\n".join(self.view.document.lines)
        assert text.count(before + behind) == 1, place
        lines = text[: text.index(before + behind) + len(before)].split("\n")
        story = hover(self.view, self.store, len(lines) - 1, len(lines[-1]))
        return "" if story is None else story.markdown.replace("  \n", "\n")


def stops(text: str, path: Path) -> list[Stopped]:
    """Run a program as under a debugger."""
    path.write_text(PRELUDE + without_hints(text), encoding="utf-8")
    recorder = Recorder(RecorderOptions(debugger=Debugger((), frozenset())), None)
    found: list[Stopped] = []

    def stop() -> None:
        stop = standing_of(recorder, sys._getframe(1), threading.get_ident())
        assert stop is not None
        found.append(Stopped(path, rows_of(recorder), stop))

    names = {"__name__": "program", "__file__": str(path), "stop": stop}
    code = compile(path.read_bytes(), str(path), "exec")
    recorder.start(sys._getframe())
    try:
        exec(code, names)
    finally:
        recorder.stop()
    return found


NOT_REACHED = "From an earlier call. It is not known whether this call gets here."

BEGINNING = """
    class Block(nn.Module):
        def forward(self, x): «x f32[4]»
            stop()
            return x[1:] «~ f32[4|5|6]»
    blocks = [Block() for _ in range(4)]
    x = torch.ones(7) «f32[7]»
    for block in blocks:
        x = block(x) «~ f32[4|5|6]»
"""


def test_at_the_beginning_of_a_call_it_is_known_what_it_was_called_with(tmp_path: Path) -> None:
    last = stops(BEGINNING, tmp_path / "program.py")[-1]
    assert last.text() == plain(BEGINNING)
    assert last.hover("(self, ^x)").startswith("```python\n▸ x: f32[4]\n")


def test_an_error_of_an_earlier_call_is_marked(tmp_path: Path) -> None:
    program = """
        class Bad(nn.Module):
            def forward(self, x):
                raise ValueError("no")
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.bad = Bad()
            def forward(self, x): «x f32[2]»
                y = x * 2 «f32[2]»
                stop()
                try:
                    self.bad(y) «~ ✗ no»
                except ValueError:
                    pass
                return y «~ f32[2]»
        net = Net()
        for _ in range(2):
            net(torch.ones(2)) «~ f32[2]»
    """
    last = stops(program, tmp_path / "program.py")[-1]
    assert last.text() == plain(program)
    assert last.hover("self.bad(y^)").endswith(NOT_REACHED)


NAMES = """
    class Net(nn.Module):
        def forward(self, x, flag):
            if flag:
                z = x * 2
            else:
                z = x.T
            stop()
            q = z.sum()
            out = q + x
            return out
    net = Net()
    for flag in (True, False, True):
        net(torch.ones(2, 3), flag)
"""


@pytest.mark.parametrize("place", ["^q = z", "q = ^z", "out = ^q", "return ^out", "^z = x * 2"])
def test_a_name_says_that_it_was_not_reached(place: str, tmp_path: Path) -> None:
    second = stops(NAMES, tmp_path / "program.py")[1]
    assert second.hover(place).endswith(NOT_REACHED)


@pytest.mark.slow
@pytest.mark.parametrize("place", ["^z = x.T", "z = ^x.T", "forward(self, ^x"])
def test_a_name_that_was_reached_says_nothing(place: str, tmp_path: Path) -> None:
    second = stops(NAMES, tmp_path / "program.py")[1]
    assert second.hover(place)
    assert "this call" not in second.hover(place)


HELD = """
    def tail(x):
        return x[1:]
    def step(x):
        c = tail(x)
        found = [tail(each) for each in (x, c)]
        m = torch.ones(4)
        if len(x) > 4:
            stop()
        return c
    for i in range(40):
        step(torch.ones(4 if i < 30 else 5))
"""


@pytest.mark.parametrize(
    ("place", "told"),
    [("^c = tail", "c: f32[4]"), ("return ^c", "c: f32[4]"), ("step(^x):", "x: f32[5]")],
)
def test_a_name_is_what_it_is_in_the_frame(place: str, told: str, tmp_path: Path) -> None:
    for each in stops(HELD, tmp_path / "program.py"):
        assert f"▸ {told}" in each.hover(place) or f"# {told[3:]}" in each.hover(place)
        assert "this call" not in each.hover(place)


def test_a_name_of_a_comprehension_that_is_over_is_that_of_some_call(tmp_path: Path) -> None:
    last = stops(HELD, tmp_path / "program.py")[-1]
    assert last.hover("tail(^each)").endswith(NOT_REACHED)


BRANCHES = """
    def plain(n):
        return torch.ones(n)
    class Net(nn.Module):
        def forward(self, x, n):
            if n == 1:
                y = plain(3)
                w = y
                z = x * 2
            elif n == 2:
                y = plain(4)
                w = y
                z = x.T
            stop()
            for k in range(n):
                if k == 1:
                    v = plain(5)
                    z = x + 1
            stop()
            return x - 1
    net = Net()
    for n in (2, 1, 2):
        net(torch.ones(2, 3), n)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "marked"),
    [
        # What is in the loop comes later, or did not run in this call.
        (2, ["y = plain(4)", "w = y", "z = x.T", "v = plain(5)", "z = x + 1"]),
        (3, ["y = plain(4)", "w = y", "z = x.T", "v = plain(5)", "z = x + 1"]),
        (4, ["y = plain(3)", "w = y", "z = x * 2", "v = plain(5)", "z = x + 1"]),
        (5, ["y = plain(3)", "w = y", "z = x * 2"]),
    ],
)
def test_what_stands_in_a_branch_that_was_passed_by_is_marked(
    number: int, marked: list[str], tmp_path: Path
) -> None:
    """What a plain function returned is told by no call of the function that is focused."""
    lines = stops(BRANCHES, tmp_path / "program.py")[number].text().split("\n")
    found = [line.partition("«~")[0].strip() for line in lines if "«~" in line]
    assert found == [*marked, "return x - 1", "net(torch.ones(2, 3), n)"]
    assert sum("«f32" in line and "            " in line for line in lines) == 8 - len(marked)


def test_what_an_error_kept_from_running_is_marked(tmp_path: Path) -> None:
    program = """
        def plain(n):
            return torch.ones(n)
        class Net(nn.Module):
            def forward(self, x, n):
                try:
                    first = plain(3)
                    x = x * 3
                    if n:
                        raise ValueError
                    second = plain(4)
                    last = x * 2
                except ValueError:
                    x = x + 1
                for _ in range(1 - n):
                    v = plain(5)
                    with torch.no_grad():
                        w = x - 1
                stop()
                return x
        net = Net()
        for n in (0, 1, 0):
            net(torch.ones(2), n)
    """
    shown = [each.text().split("\n") for each in stops(program, tmp_path / "program.py")]
    marked = [[line.partition("«~")[0].strip() for line in each if "«~" in line] for each in shown]
    call = "net(torch.ones(2), n)"
    passed_by = ["second = plain(4)", "last = x * 2", "v = plain(5)", "w = x - 1"]
    assert marked[1:] == [[*passed_by, call], ["x = x + 1", call]]


def test_what_a_plain_function_is_called_with_is_told(tmp_path: Path) -> None:
    program = """
        def scaled(x, stops): «x f32[3]»
            y = x * 2 «f32[3]»
            if stops:
                stop()
            return y
        class Net(nn.Module):
            def forward(self, x): «x f32[3]»
                part = scaled(x[1:], False) «f32[2]»
                return scaled(x, True)
        net = Net()
        net(torch.ones(3))
    """
    (only,) = stops(program, tmp_path / "program.py")
    assert only.text() == plain(program)
