"""What is printed: a tree that fits into 80 columns."""

from __future__ import annotations

import io
import re
from collections.abc import Callable

import pytest

from shapetrace.events import followed
from shapetrace.events.followed import (
    CallBegan,
    CallEnded,
    Caller,
    FollowedValue,
    FollowingNote,
    NamedValue,
    VariableChanged,
)
from shapetrace.events.model import Container, Other, Tensor
from shapetrace.variables.outlets import Printing
from shapetrace.views.followed import FollowedOptions, event_text
from tests.python.unit.variables.programs import Program
from tests.support.times import with_one_time

Load = Callable[..., Program]

_VIDEO = FollowedValue(followed.ARRAY, Tensor((73, 3, 720, 720), "uint8", kind="ndarray"))
_FLOATS = FollowedValue(followed.TENSOR, Tensor((3, 73, 384, 544), "float32"))


def lines(*events: followed.FollowedEvent, width: int = 80) -> list[str]:
    options = FollowedOptions(width, "/work")
    return [line for event in events for line in event_text(event, options).plain().splitlines()]


def test_the_tree_of_the_document() -> None:
    found = lines(
        CallBegan(
            *(1, None, 0, "Dataset.transform", "/work/data.py", 40),
            (Caller("Dataset.__getitem__", "/work/data.py", 28),),
            (
                NamedValue("self", FollowedValue(followed.OTHER, Other("Dataset"))),
                NamedValue("video", _VIDEO, True),
            ),
        ),
        VariableChanged(
            1, 0, "video", "/work/data.py", 45, _VIDEO, _FLOATS, ("kind", "shape", "dtype")
        ),
        VariableChanged(1, 0, "video", "/work/data.py", 46, _FLOATS, _FLOATS, ("values",)),
        CallBegan(2, 1, 1, "resize", "/work/data.py", 60, (), (), "generator"),
        CallEnded(
            2, 1, "resize", "/work/data.py", 61, "closed", None, 0.000_02, flavor="generator"
        ),
        CallBegan(3, 1, 1, "crop", "/elsewhere/crop.py", 6, (), ()),
        CallEnded(3, 1, "crop", "/elsewhere/crop.py", 7, "raised", None, 2.5, "ValueError"),
        CallEnded(1, 0, "Dataset.transform", "/work/data.py", 47, "returned", _FLOATS, 0.0123),
        FollowingNote("f never assigns 'x'", "f", "/work/data.py", 3),
    )
    assert found == [
        "┌── Dataset.transform  data.py:40, called from Dataset.__getitem__ data.py:28",
        "├─ in   video  u8[73,3,720,720]",
        "├─ data.py:45  video  u8[73,3,720,720] → f32[3,73,384,544]",
        "├─ data.py:46  video  f32[3,73,384,544]  values changed",
        "│   ┌── resize  data.py:60 generator",
        "│   └─ generator closed  20 µs",
        "│   ┌── crop  crop.py:6",
        "│   └─ raised ValueError at crop.py:7  2.50 s",
        "└─ out  f32[3,73,384,544]  12.3 ms",
        "shapetrace: data.py:3: f never assigns 'x'",
    ]


_CHAIN = (
    Caller("Dataset.__getitem__", "/work/data.py", 28),
    Caller("fetch", "/work/loader.py", 7),
    Caller("<module>", "/work/train.py", 3),
)


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (200, "Dataset.__getitem__ data.py:28 ← fetch loader.py:7 ← train.py:3"),
        (95, "Dataset.__getitem__ data.py:28 ← fetch loader.py:7 ← …"),
        (75, "Dataset.__getitem__ data.py:28 ← …"),
        (70, "Dataset.__getitem__ data.py:28"),
        (50, "data.py:28"),
        (30, None),
    ],
)
def test_callers_are_a_chain_that_is_cut_for_a_terminal(width: int, expected: str | None) -> None:
    event = CallBegan(1, None, 0, "transform", "/work/data.py", 40, _CHAIN, ())
    head = "┌── transform  data.py:40"
    (line,) = lines(event, width=width)
    assert line == (head if expected is None else f"{head}, called from {expected}")
    assert len(line) <= width
    whole = FollowedOptions(width, "/work", cuts_callers=False)
    assert event_text(event, whole).plain().splitlines() == [
        f"{head}, called from Dataset.__getitem__ data.py:28 ← fetch loader.py:7 ← train.py:3"
    ]


def test_the_whole_chain_goes_to_a_file_and_each_chain_is_known_by_itself(
    program: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    it = program("""
        import io
        class Terminal(io.StringIO):
            def isatty(self):
                return True

        @auto_diff(file=(stream := io.StringIO()), stats=False)
        def innermost_function_with_a_name_that_is_long(x):
            return x

        @auto_diff(file=(terminal := Terminal()))
        def shown(x):
            return x

        def first(x):
            return innermost_function_with_a_name_that_is_long(x), shown(x)  # first

        def second(x):
            return first(x)  # second

        def third(x):
            return second(x)  # third

        def fourth(x):
            return third(x)  # fourth

        def other(x):
            return second(x)  # other

        def several(x):
            for _ in range(2):
                fourth(x)
                other(x)  # several
    """)
    it.module.several(3)
    began = [
        line.partition(", called from ")[2]
        for line in it.module.stream.getvalue().splitlines()
        if line.startswith("┌──")
    ]

    def place(name: str) -> str:
        return f"{name} {it.path.name}:{it.line(name)}"

    both = [
        f"{place('first')} ← {place('second')} ← {place('third')}",
        f"{place('first')} ← {place('second')} ← {place('other')}",
    ]
    assert began == both * 2
    shown = [line for line in it.module.terminal.getvalue().splitlines() if "┌──" in line]
    assert len(shown) == 4
    assert max(len(re.sub(r"\x1b\[[\d;]*m", "", line)) for line in shown) <= 80


def test_long_containers_are_cut_and_lines_fit() -> None:
    items = tuple(Tensor((n, n + 1, 64), "float32") for n in range(40))
    keys = tuple(f"a rather long key {n}" for n in range(40))
    value = FollowedValue(followed.CONTAINER, Container("dict", items, keys))
    text = FollowedValue(followed.SCALAR, Other(repr("word " * 50)))
    found = lines(
        CallBegan(
            *(1, None, 3, "f", "/work/a.py", 1),
            (Caller("a_function_with_a_long_name" * 2, "/work/b.py", 2),),
            (NamedValue("sample", value), NamedValue("text", text)),
        ),
        VariableChanged(1, 3, "sample", "/work/a.py", 2, value, text, ("kind",)),
        VariableChanged(1, 3, "sample", "/work/a.py", 2, value, value, ("values",)),
        CallEnded(1, 3, "f", "/work/a.py", 3, "returned", value, 123.4),
    )
    assert max(map(len, found)) <= 80
    assert all("…" in line for line in found[1:])


def test_a_program_prints_whole_lines_to_stdout(
    program: Load, capsys: pytest.CaptureFixture[str]
) -> None:
    it = program("""
        @var_tracker("x")
        def f(x):  # def
            x = x * 2  # twice
            return x
    """)
    it.module.f(3)
    it.module.f(3)
    out = with_one_time(capsys.readouterr().out)
    name = it.path.name
    one = [
        f"┌── f  {name}:{it.line('def')}, called from test_printing.py:1",
        "├─ in   x  3",
        f"├─ {name}:{it.line('twice')}  x  3 → 6",
        "└─ out  6  1 ms",
    ]
    out = re.sub(r", called from .*", ", called from test_printing.py:1", out)
    assert out.splitlines() == one * 2


def test_a_stream_can_be_given_and_may_be_closed(program: Load) -> None:
    it = program("""
        import io
        stream = io.StringIO()

        @auto_diff(file=stream)
        def f(x):
            return x
    """)
    it.module.f(3)
    assert it.module.stream.getvalue().splitlines()[1] == "├─ in   x  3"
    it.module.stream.close()
    assert it.module.f(3) == 3


class Terminal(io.StringIO):
    def __init__(self, encoding: str) -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return True


def test_colours_on_a_terminal_and_plain_signs_where_it_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    stream = Terminal("utf-8")
    change = VariableChanged(1, 1, "x", "/a.py", 2, _VIDEO, _FLOATS, ("dtype",))
    Printing(stream)(change)
    assert "\x1b[" in stream.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal("ascii")
    Printing(stream)(change)
    began = CallBegan(1, None, 0, "f", "/a.py", 1, (), ())
    ended = CallEnded(1, 0, "f", "/a.py", 3, "returned", _FLOATS, 0.00002)
    Printing(stream)(began)
    Printing(stream)(ended)
    assert stream.getvalue().splitlines() == [
        "|   |- a.py:2  x  u8[73,3,720,720] -> f32[3,73,384,544]",
        ".-- f  a.py:1",
        "`- out  f32[3,73,384,544]  20 us",
    ]
