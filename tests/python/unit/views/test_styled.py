from __future__ import annotations

import pytest

from shapetrace.views.styled import (
    Span,
    cells,
    cut_line,
    cut_middle,
    cut_to_cells,
    join_right,
    line_cells,
    line_text,
    printable,
)


@pytest.mark.parametrize(
    ("text", "width"),
    [("plain", 5), ("größe", 5), ("东京", 4), ("e\u0301", 1), ("⬇️ f", 4), ("│ ×→", 4), ("", 0)],
)
def test_cells(text: str, width: int) -> None:
    assert cells(text) == width


@pytest.mark.parametrize(
    ("text", "width", "cut"),
    [
        ("shape", 5, "shape"),
        ("shapes", 5, "shap…"),
        ("东京东京", 5, "东京…"),
        ("东京东京", 4, "东…"),
        ("shape", 1, "…"),
    ],
)
def test_cutting_the_end(text: str, width: int, cut: str) -> None:
    assert cut_to_cells(text, width) == cut


@pytest.mark.parametrize(
    ("text", "width", "cut"),
    [
        ("gpt2/modeling_gpt2.py:310", 25, "gpt2/modeling_gpt2.py:310"),
        ("gpt2/modeling_gpt2.py:310", 16, "gpt2/…pt2.py:310"),
        ("abc", 1, "…"),
        ("abc", 0, ""),
    ],
)
def test_cutting_the_middle(text: str, width: int, cut: str) -> None:
    assert cut_middle(text, width) == cut


def test_cutting_a_line_keeps_styles() -> None:
    line: tuple[Span, ...] = (("linear", "call"), ("  ", None), ("f32[2,16]", "shape"))
    assert cut_line(line, 17) == line
    assert cut_line(line, 12) == (("linear", "call"), ("  ", None), ("f32…", "shape"))
    assert cut_line(line, 8) == (("linear", "call"), (" …", None))
    assert cut_line(line, 3) == (("li…", "call"),)
    for width in range(1, 20):
        assert line_cells(cut_line(line, width)) <= width


def test_the_right_part_stands_at_the_edge_where_there_is_room() -> None:
    left: tuple[Span, ...] = (("a", None),)
    right: tuple[Span, ...] = (("b.py:1", "location"),)
    joined = join_right(left, right, 20)
    assert joined is not None
    assert line_text(joined) == "a             b.py:1"
    assert join_right(left, right, 9) is not None
    assert join_right(left, right, 8) is None
    assert join_right(left, (), 1) == left
    assert join_right(left, (), 0) is None


def test_on_a_wide_terminal_the_edge_is_nearer_and_long_lines_pass_it() -> None:
    right: tuple[Span, ...] = (("b.py:1", "location"),)
    short, long = (
        join_right((("a", None),), right, 300),
        join_right((("a" * 200, None),), right, 300),
    )
    assert short is not None
    assert long is not None
    assert line_cells(short) == 120
    assert line_cells(long) == 208


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("größe 东京 ×\u3000\xa0", "größe 东京 ×\u3000\xa0"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\u202e\u2028\udc80", "\\u202e\\u2028\\udc80"),
    ],
)
def test_printable(text: str, shown: str) -> None:
    assert printable(text) == shown
