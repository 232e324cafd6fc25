"""Which lines of a document are which lines of the source, after any edits."""

from __future__ import annotations

from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapetrace.server.documents import Change, Document, Documents
from shapetrace.server.line_alignment import Alignment

# The source, the document, and for each of its lines the line of the source that it is.
COMPARED = {
    "the same": ("a b c", "a b c", "0 1 2"),
    "the same, with lines that are alike": ("a a b a", "a a b a", "0 1 2 3"),
    "a line in between": ("a b", "a x b", "0 - 1"),
    "a line less": ("a x b", "a b", "0 2"),
    "a line changed": ("a x b", "a y b", "0 - 2"),
    "everything changed": ("a b", "x y", "- -"),
    "nothing left": ("a b", "", "-"),
    "one of two like lines is gone": ("a a", "a", "-"),
    "one of two like lines is gone between others": ("p a a q", "p a q", "0 - 3"),
    "a like line has come": ("a", "a a", "- -"),
    "like lines that others keep apart": ("a x a y a", "a x a y a z", "0 1 2 3 4 -"),
    "a like line has come at one of them": ("a x a", "a a x a", "- - 1 2"),
    "as many like lines as before": ("a a x", "a a y", "0 1 -"),
    "as many like lines, but others in between": ("a b a b", "b a b a", "- - - -"),
    "two lines changed places": ("p a b q", "p b a q", "0 - 1 3"),
    "a block moved": ("a b c d e f", "c d e f a b", "2 3 4 5 - -"),
    "blank lines": ("a _ b _ c", "a _ _ b c", "0 - - 2 4"),
}


@pytest.mark.parametrize(("ran", "now", "expected"), COMPARED.values(), ids=COMPARED.keys())
def test_a_document_that_differs_is_compared(ran: str, now: str, expected: str) -> None:
    alignment = Alignment(ran.split(), now.split(" "))
    shown = " ".join("-" if origin is None else str(origin) for origin in alignment.origins)
    assert shown == expected


BELOW = {
    "another class": (
        "class A:/  def f(x):/    y = x/    return y",
        "class B:/  def f(x):/    y = x/    return y",
        "- - - -",
    ),
    "another function": ("def f(x):/  y = x", "def g(x):/  y = x", "- -"),
    "the same function with another head": (
        "def f(x):/  y = x",
        "def f(x, z=None):/  y = x",
        "- 1",
    ),
    "a head over several lines": (
        "class A:/  def f(/    x/  ):/    y = x",
        "class A:/  def g(/    x/  ):/    y = x",
        "0 - - - -",
    ),
    "a function moved into a class": (
        "def f(x):/  y = x",
        "class A:/  def f(x):/    y = x",
        "- - -",
    ),
    "what follows a function": ("def f():/  x/y", "def g():/  x/y", "- - 2"),
    "a docstring that stands out": (
        'def f():/  """Text/and more/  """/  y',
        'def f():/  """Text/and others/  """/  y',
        "0 1 - 3 4",
    ),
}


@pytest.mark.parametrize(("ran", "now", "expected"), BELOW.values(), ids=BELOW.keys())
def test_lines_stay_in_their_function(ran: str, now: str, expected: str) -> None:
    alignment = Alignment(ran.split("/"), now.split("/"))
    shown = " ".join("-" if origin is None else str(origin) for origin in alignment.origins)
    assert shown == expected


def test_lines_that_are_put_in_stay_in_their_function() -> None:
    ran = "class A:/  def f(x):/    y = x/    return y/class B:/  def g(x):/    return x"
    alignment = Alignment(ran.split("/"), ran.split("/"))
    alignment.replace(2, 2, ["    z"])
    alignment.replace(5, 1, ["    y = x", "    return y"])
    assert alignment.origins == [0, 1, None, 4, 5, None, None]
    alignment.replace(2, 1, ["    y = x"])
    assert alignment.origins == [0, 1, 2, 4, 5, None, None]


def edited(ran: str, *steps: str) -> str:
    """A document after edits, each line with the number of the source line that it is.

    A step is ``first:character-last:character text``, with ``/`` for line ends.
    """
    document = Document("file:///p.py", "/p.py", "\n".join(ran.split()), 1)
    alignment = document.alignment("\n".join(ran.split()))
    for step in steps:
        where, _, text = step.partition(" ")
        start, end = (tuple(map(int, each.split(":"))) for each in where.split("-"))
        document.replace((start[0], start[1]), (end[0], end[1]), text.replace("/", "\n"))
    return " ".join(
        f"{line or '_'}{'' if origin is None else origin}"
        for line, origin in zip(document.lines, alignment.origins, strict=True)
    )


# The source, edits, and the lines with their origins.
EDITED = {
    "typing in a line": ("a b c", ["1:1-1:1 x"], "a0 bx c2"),
    "typing and taking it back": ("a b c", ["1:1-1:1 x", "1:1-1:2 "], "a0 b1 c2"),
    "a line break at the end of a line": ("a b", ["0:1-0:1 /"], "a0 _ b1"),
    "a line break at the beginning of a line": ("a b", ["1:0-1:0 /"], "a0 _ b1"),
    "a line break within a line": ("ab c", ["0:1-0:1 /"], "a b c1"),
    "and joining it again": ("ab c", ["0:1-0:1 /", "0:1-1:0 "], "ab0 c1"),
    "the line copied below": ("a b", ["0:1-0:1 /a"], "a0 a b1"),
    "the line copied above": ("a b", ["0:0-0:0 a/"], "a a0 b1"),
    "the copy of a line stays, the line goes": ("a b", ["0:1-0:1 /a", "0:0-1:0 "], "a0 b1"),
    "the first of two like lines goes": ("a a b", ["0:0-1:0 "], "a1 b2"),
    "the second of two like lines goes": ("a a b", ["0:1-1:1 "], "a0 b2"),
    "both go, and one is typed again": ("p a a b", ["1:0-3:0 ", "1:0-1:0 a/"], "p0 a b3"),
    "and the other": (
        "p a a b",
        ["1:0-3:0 ", "1:0-1:0 a/", "2:0-2:0 a/"],
        "p0 a1 a2 b3",
    ),
    "a block goes and comes back": ("a b c d", ["1:0-3:0 ", "1:0-1:0 b/c/"], "a0 b1 c2 d3"),
    "a block comes back, but elsewhere": ("a b c d", ["1:0-3:0 ", "1:1-1:1 /b/c"], "a0 d3 b c"),
    "a line moved up": ("a b c", ["1:1-2:1 ", "1:0-1:0 c/"], "a0 c b1"),
    "everything replaced by the same": ("a b a", ["0:0-2:1 a/b/a"], "a0 b1 a2"),
    "everything replaced by nearly the same": ("a b a", ["0:0-2:1 a/x/a"], "a0 x a2"),
    "an edit with no end": ("a b", ["1:0-99:99 x"], "a0 x"),
}


@pytest.mark.parametrize(("ran", "steps", "expected"), EDITED.values(), ids=EDITED.keys())
def test_edits_are_followed(ran: str, steps: list[str], expected: str) -> None:
    assert edited(ran, *steps) == expected


LINES = st.lists(
    st.sampled_from(["a", "b", "c", "", "  ä", "x = 😀", "y"]), min_size=1, max_size=12
)
TEXTS = st.lists(st.sampled_from(["a", "b", "", "ä", "😀", "  "]), min_size=1, max_size=4).map(
    "\n".join
)
NUMBERS = st.integers(0, 200)


class Naive:
    """A document that keeps of each line whether anybody has touched it."""

    def __init__(self, lines: list[str]) -> None:
        self.lines: list[tuple[str, int | None]] = [
            (line, number) for number, line in enumerate(lines)
        ]

    def replace(self, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        before = self.lines[start[0]][0][: start[1]]
        behind = self.lines[end[0]][0][end[1] :]
        new = [(line, None) for line in (before + text + behind).split("\n")]
        self.lines[start[0] : end[0] + 1] = new


@st.composite
def edits(draw: st.DrawFn, lines: list[str]) -> tuple[tuple[int, int], tuple[int, int], str]:
    """A range within lines, and a text for it."""
    places = sorted(
        (line, draw(NUMBERS) % (len(lines[line]) + 1))
        for line in (draw(NUMBERS) % len(lines), draw(NUMBERS) % len(lines))
    )
    return (places[0], places[1], draw(TEXTS))


def units(line: str, index: int) -> int:
    """A column as the protocol counts it."""
    return len(line[:index].encode("utf-16-le")) // 2


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(ran=LINES, data=st.data())
def test_no_line_is_ever_taken_for_another(ran: list[str], data: st.DataObject) -> None:
    naive = Naive(ran)
    documents = Documents()
    document = documents.open("file:///program.py", "\n".join(ran), 1)
    assert document is not None
    alignment = document.alignment("\n".join(ran))
    for version in range(2, 2 + data.draw(st.integers(1, 8))):
        now = [line for line, _ in naive.lines]
        start, end, text = data.draw(edits(now))
        naive.replace(start, end, text)
        in_units = [(line, units(now[line], index)) for line, index in (start, end)]
        documents.change(document.uri, version, [Change(text, in_units[0], in_units[1])])

        assert document.lines == [line for line, _ in naive.lines]
        origins = list(alignment.origins)
        known = [origin for origin in origins if origin is not None]
        assert known == sorted(set(known))
        for (line, untouched), origin in zip(naive.lines, origins, strict=True):
            assert origin is None or ran[origin] == line
            assert untouched is None or origin == untouched
        if document.lines == ran:
            assert origins == list(range(len(ran)))


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(ran=LINES, now=LINES)
def test_comparing_finds_equal_lines_in_order_only(ran: list[str], now: list[str]) -> None:
    alignment = Alignment(ran, now)
    known = [origin for origin in alignment.origins if origin is not None]
    assert known == sorted(set(known))
    for line, origin in zip(now, alignment.origins, strict=True):
        assert origin is None or ran[origin] == line
    for origin in range(len(ran)):
        where = alignment.document_line(origin)
        assert where is None or alignment.origins[where] == origin


def test_line_ends_are_those_of_the_protocol() -> None:
    text = dedent("""\
        a\fb
        c\u2028d
        e\x85f
        """)
    document = Document("file:///p.py", "/p.py", text.replace("\n", "\r\n"), 1)
    assert document.lines == ["a\fb", "c\u2028d", "e\x85f", ""]
    assert list(document.alignment(text).origins) == [0, 1, 2, 3]
    document.replace((1, 1), (1, 1), "\rx")
    assert document.lines == ["a\fb", "c", "x\u2028d", "e\x85f", ""]


def test_a_whole_new_text_is_compared() -> None:
    document = Document("file:///p.py", "/p.py", "a\nb\nc", 1)
    alignment = document.alignment("a\nb\nc")
    document.replace_all("x\na\nc")
    assert list(alignment.origins) == [None, 0, 2]
