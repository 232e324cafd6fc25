"""Printing to whatever a program makes of its streams, and telling lines apart that look alike."""

from __future__ import annotations

import io
import itertools
import linecache
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shapetrace.variables.followed_names import parse_name
from shapetrace.variables.outlets import Printing
from shapetrace.variables.tracking import Request, track
from shapetrace.variables.variable_listener import Followed
from tests.python.unit.variables.programs import Program
from tests.support.times import with_one_time

Load = Callable[..., Program]


def printed(stream: io.StringIO) -> list[str]:
    lines = with_one_time(stream.getvalue()).splitlines()
    return [line.split(", called from ")[0] for line in lines]


def test_what_calls_name_is_told_apart(program: Load) -> None:
    it = program("""
        import io
        stream = io.StringIO()

        class Thing:
            pass

        @var_tracker("self.a", "self.b", file=stream)
        def f(self):
            pass

        one, other = Thing(), Thing()
        one.a = other.b = 2

        def make(name):
            @var_tracker(name, file=stream)
            def g(x):
                pass
            return g
    """)
    for thing in (it.module.one, it.module.other):
        it.module.f(thing)
    thing.a = 2
    for name in ("x.a", "x.b"):
        it.module.make(name)(thing)
    inner = [line for line in printed(it.module.stream) if "  2" in line]
    assert inner == ["├─ in   self.a  2", "├─ in   self.b  2", "├─ in   x.a  2", "├─ in   x.b  2"]


def test_a_file_that_is_loaded_again_has_other_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.StringIO()
    printing = Printing(stream)
    path = tmp_path / "loaded_again.py"

    def call(x: Callable[[int], object]) -> None:
        x(1)

    for name, parameter in (("first", "a"), ("second", "other")):
        path.write_text(f"def {name}({parameter}):\n    pass\n")
        linecache.checkcache(str(path))
        names: dict[str, Callable[[int], object]] = {}
        exec(compile(path.read_text(), str(path), "exec"), names)
        with track(names[name], Request((), (printing,))):
            call(names[name])
    assert [line for line in printed(stream) if "out" not in line] == [
        "┌── first  loaded_again.py:1",
        "├─ in   a  1",
        "┌── second  loaded_again.py:1",
        "├─ in   other  1",
    ]


def test_what_a_stream_does_while_it_is_written_to_is_not_followed() -> None:
    lines: list[str] = []
    depths: list[int] = []

    class Numbering(io.StringIO):
        depth = 0

        def write(self, text: str, /) -> int:
            self.depth += 1
            depths.append(self.depth)
            lines.append(f"{next(numbers)} {text}")
            self.depth -= 1
            return len(text)

    def count() -> Iterator[int]:
        x = False
        for number in itertools.count():
            x = not x
            yield number

    def work(x: int) -> int:
        x = x * 2
        return x

    printing = Printing(Numbering())
    request = Request((Followed(parse_name("x")),), (printing,))
    numbers = itertools.count()
    with track(count, request), track(work, request):
        followed = count()
        for _ in range(4):  # the lines of both changes are known then
            next(followed)
        numbers = followed  # type: ignore[assignment]  # both give numbers
        del lines[:], depths[:]
        for _ in range(4):
            work(3)
        assert depths == [1] * 12
        assert [int(line.split()[0]) for line in lines] == [*range(4, 16)]
        followed.close()  # type: ignore[attr-defined]  # a generator


class Terminal(io.StringIO):
    """A stream that says it is a terminal, and does something when it is asked."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        super().__init__()
        self.meanwhile = meanwhile

    def isatty(self) -> bool:
        self.meanwhile()
        return True


def test_a_stream_that_is_looked_at_does_not_lend_its_colours_to_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for variable in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(variable, raising=False)
    file = io.StringIO()

    def meanwhile() -> None:
        """Another thread puts the file in the terminal's place, and prints to it."""
        monkeypatch.setattr(sys, "stdout", file)
        other = threading.Thread(target=work, args=(1,))
        other.start()
        other.join()

    def work(x: int) -> int:
        return x

    with track(work, Request((), (Printing(None),))):
        monkeypatch.setattr(sys, "stdout", Terminal(meanwhile))
        work(2)
        work(3)
        work(3)
    assert "\033" not in file.getvalue()
    assert file.getvalue().count("┌──") == 4


def test_a_stream_that_takes_another_encoding_gets_what_it_takes() -> None:
    data = io.BytesIO()
    stream = io.TextIOWrapper(data, "utf-8")

    def work(x: int) -> int:
        return x

    with track(work, Request((), (Printing(stream),))):
        work(1)
        stream.reconfigure(encoding="ascii")
        work(1)
        work(1)
    stream.flush()
    lines = data.getvalue().decode("utf-8").splitlines()
    assert [line[0] for line in lines] == [*"┌├└", *".|`", *".|`"]


def test_a_metaclass_is_not_asked_for_the_names_of_its_classes(program: Load) -> None:
    it = program("""
        asked = []

        class Meta(type):
            @property
            def __name__(cls):
                asked.append(cls)
                return "another"

        class A(metaclass=Meta):
            pass

        @var_tracker("x", handler=told)
        def f(x):
            x = A
            x = {A(): [A(), A]}
            return x
    """)
    it.module.f(it.module.A())
    assert it.module.asked == []
    assert "A" in it.history()[0]
