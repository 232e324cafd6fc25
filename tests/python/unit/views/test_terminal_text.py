from __future__ import annotations

import io
import re
import sys

import pytest

from shapetrace.views import ViewOptions, render, terminal_width, wants_color
from shapetrace.views.styled import StyledText
from shapetrace.views.terminal_text import to_text
from tests.python.unit.views import programs
from tests.python.unit.views.builder import FOLDER

ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


class Stream(io.StringIO):
    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


@pytest.mark.parametrize(
    ("choice", "is_terminal", "environ", "wanted"),
    [
        ("auto", True, {}, True),
        ("auto", False, {}, False),
        ("auto", True, {"TERM": "xterm"}, True),
        ("auto", True, {"TERM": "dumb"}, False),
        ("auto", True, {"NO_COLOR": "1"}, False),
        ("auto", True, {"NO_COLOR": ""}, True),
        ("auto", False, {"FORCE_COLOR": "1"}, True),
        ("auto", False, {"FORCE_COLOR": "1", "TERM": "dumb"}, True),
        ("auto", False, {"FORCE_COLOR": "0"}, False),
        ("auto", False, {"FORCE_COLOR": ""}, False),
        ("auto", True, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ("always", False, {"NO_COLOR": "1", "TERM": "dumb"}, True),
        ("never", True, {"FORCE_COLOR": "1"}, False),
    ],
)
def test_who_decides_about_colour(
    choice: str, is_terminal: bool, environ: dict[str, str], wanted: bool
) -> None:
    assert wants_color(choice, Stream(is_terminal), environ) is wanted


def test_a_closed_or_missing_stream_gets_no_colour() -> None:
    closed = io.StringIO()
    closed.close()
    assert wants_color("auto", closed, {}) is False
    assert wants_color("auto", None, {}) is False


@pytest.mark.parametrize(
    ("columns", "width"), [("132", 132), ("0", 77), ("", 77), ("wide", 77), ("-3", 77)]
)
def test_width(columns: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.__stdout__", None)
    monkeypatch.delenv("COLUMNS", raising=False)
    assert terminal_width({"COLUMNS": columns}, default=77) == width


def shown(view: str, *, color: bool = False, encoding: str = "utf-8", width: int = 90) -> str:
    recording = programs.generation()
    options = ViewOptions(width=width, base=FOLDER, read_source=recording.read_source)
    return render(recording.trace(), view, options, color=color, encoding=encoding)


@pytest.mark.parametrize("view", ["tree", "listing", "table"])
def test_colours_change_nothing_but_colours(view: str) -> None:
    plain, colored = shown(view), shown(view, color=True)
    assert len(ESCAPES.findall(colored)) > 50
    stripped = ESCAPES.sub("", colored)
    assert [line.rstrip() for line in stripped.splitlines()] == plain.splitlines()


@pytest.mark.parametrize("view", ["markdown", "json"])
def test_documents_have_no_colours(view: str) -> None:
    assert shown(view, color=True) == shown(view)


def test_the_expression_of_a_line_is_coloured() -> None:
    recording = programs.attention()
    options = ViewOptions(base=FOLDER, read_source=recording.read_source)
    text = render(recording.trace(), "listing", options, color=True)
    assert "größe, scores = q.size(-1), q @ \x1b[36mk.transpose(-2, -1)\x1b[0m" in text
    lines = text.splitlines()
    first = next(index for index, line in enumerate(lines) if "scores = torch.soft" in line)
    assert "\x1b[36m2 * scores\x1b[0m," in lines[first + 1]


@pytest.mark.parametrize("view", ["tree", "listing", "table"])
def test_errors_stand_out(view: str) -> None:
    recording = programs.failure()
    options = ViewOptions(base=FOLDER, read_source=recording.read_source)
    text = render(recording.trace(), view, options, color=True)
    assert text.count("\x1b[1;31m✗ RuntimeError") == text.count("✗") >= 2


def test_without_rich_text_is_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("rich", "rich.color", "rich.console", "rich.style"):
        monkeypatch.setitem(sys.modules, module, None)
    assert shown("tree", color=True) == shown("tree")


def test_signs_that_an_encoding_lacks_are_replaced_and_columns_stay() -> None:
    utf8, ascii_ = shown("tree").splitlines(), shown("tree", encoding="ascii").splitlines()
    assert "".join(ascii_).isascii()
    for wide, narrow in zip(utf8, ascii_, strict=True):
        if re.search(r"gpt.py:\d+$", wide):
            assert len(narrow) == len(wide) == 90
    assert "|- blocks.0  Block" in "\n".join(ascii_)
    assert "v blocks.0 (Block)" in shown("listing", encoding="ascii")
    assert shown("tree", encoding="no-such-encoding") == "\n".join(ascii_) + "\n"


def test_characters_that_an_encoding_lacks_are_escaped() -> None:
    text = StyledText(((("größe 東京 ×2", None),),))
    assert to_text(text, encoding="latin-1") == "größe \\u6771\\u4eac ×2\n"
    assert to_text(text, encoding="ascii") == "gr\\xf6\\xdfe \\u6771\\u4eac x2\n"
    assert to_text(text, encoding=None) == "größe 東京 ×2\n"


def test_what_could_steer_a_terminal_is_escaped() -> None:
    text = StyledText(((("\x1b[31mf32\u202e\n", None), ("[2]", "shape")),))
    assert to_text(text) == "\\x1b[31mf32\\u202e\\n[2]\n"
    assert "\x1b[31mf32" not in to_text(text, color=True)
