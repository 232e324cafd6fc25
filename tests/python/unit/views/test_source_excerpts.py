from __future__ import annotations

import hashlib
import linecache
from pathlib import Path

import pytest

from shapetrace.events.model import Frame
from shapetrace.views.source_excerpts import Excerpt, Sources
from shapetrace.views.source_files import read_source

FILE = "/home/ada/model.py"


def excerpt(source: str | bytes, line: int, end: int | None = None) -> Excerpt:
    data = source.encode() if isinstance(source, str) else source
    sources = Sources(lambda _: data, {FILE: hashlib.sha256(data).hexdigest()})
    return sources.excerpt(Frame(0, FILE, line, "f", 0, end or line, 1))


PROGRAM = """\
value = call(
    1,
)
if (
    value
    and other
):
    first(); second()
elif third(
    value,
):
    pass
else:
    fourth()

@decorate(
    value,
)
@other
def function(
    a=one(),
    b: two() = 2,
) -> three():
    # a comment

    '''docs'''
    return a

class Class(
    base(),
):
    field = 1

with (
    open(a) as b,
    open(c),
):
    body(b)
for x in (
    one,
    two,
): short(x)
while test(
    x
):
    pass
try:
    risky()
except (
    Error,
):
    handle()
finally:
    end()
match subject(
    value,
):
    case Pattern(
        x=1,
    ) if guard(
        x
    ):
        done()
    case _:
        pass
async def later():
    async with enter(
        a
    ) as b:
        await b
text = '''
one
''' + call(
)
function(lambda: (
    one,
))
"""


def numbers(line: int, end: int | None = None) -> tuple[int | None, ...]:
    return excerpt(PROGRAM, line, end).numbers


@pytest.mark.parametrize(
    ("line", "first_text", "last_text"),
    [
        (2, "value = call(", ")"),
        (5, "if (", "):"),
        (8, "first(); second()", "first(); second()"),
        (10, "elif third(", "):"),
        (14, "fourth()", "fourth()"),
        (17, "decorate", ")"),
        (19, "@other", "@other"),
        (21, "def function(", ") -> three():"),
        (27, "return a", "return a"),
        (30, "class Class(", "):"),
        (32, "field = 1", "field = 1"),
        (35, "with (", "):"),
        (38, "body(b)", "body(b)"),
        (40, "for x in (", "): short(x)"),
        (44, "while test(", "):"),
        (48, "risky()", "risky()"),
        (50, "except (", "):"),
        (52, "handle()", "handle()"),
        (54, "end()", "end()"),
        (56, "match subject(", "):"),
        (59, "case Pattern(", "):"),
        (63, "done()", "done()"),
        (68, "async with enter(", ") as b:"),
        (70, "await b", "await b"),
        (72, "text = '''", ")"),
        (76, "function(lambda: (", "))"),
    ],
)
def test_the_whole_statement_or_head_is_shown(line: int, first_text: str, last_text: str) -> None:
    shown = excerpt(PROGRAM, line)
    assert shown.lines is not None
    assert line in shown.numbers
    assert shown.lines[0].strip().removeprefix("@").startswith(first_text.removeprefix("@"))
    assert shown.lines[-1] == last_text


def test_a_with_statement_is_left_at_its_head_only() -> None:
    assert numbers(34, 38) == (34, 35, 36, 37)


def test_lines_lose_their_common_indentation_whatever_it_is_made_of() -> None:
    tabs = excerpt("if x:\n\tif y:\n\t\tcall(\n\t\t\t1,\n\n\t\t)\n", 4)
    assert tabs.lines == ("call(", "\t1,", "", ")")
    assert tabs.indentation == 2
    mixed = excerpt("if x:\n    call('''\n  text\n    ''')\n", 2)
    assert mixed.lines == ("  call('''", "text", "  ''')")
    assert mixed.indentation == 2


def test_of_a_very_long_statement_the_first_line_and_the_place_are_shown() -> None:
    source = "call(\n" + "".join(f"    {number},\n" for number in range(2, 40)) + ")\n"
    assert excerpt(source, 20, 21).numbers == (1, None, 20, 21, None)
    assert excerpt(source, 20, 21).lines == ("call(", "…", "    20,", "    21,", "…")
    assert excerpt(source, 2).numbers == (1, 2, None)
    assert excerpt(source, 1).numbers == (1, None)
    assert excerpt(source, 40).numbers == (1, None, 40)
    assert len(excerpt(source, 1, 40).numbers) == 21


def test_only_the_source_that_ran_is_parsed() -> None:
    source = "call(\n    1,\n    2,\n)\n"
    place = Frame(0, FILE, 2, "f", 0, 3, 1)
    for digest, doubt in (("of another text", "changed since"), (None, "may have changed since")):
        shown = Sources(lambda _: source.encode(), {FILE: digest}).excerpt(place)
        assert shown.doubt == doubt
        assert shown.lines == ("1,", "2,")
    assert excerpt(source, 2, 3).doubt == ""
    assert excerpt(source, 2, 3).numbers == (1, 2, 3, 4)


def test_what_was_typed_into_a_shell_is_taken_as_it_is() -> None:
    typed = Sources(lambda _: b"a = 1\n", {"<cell 1>": None})
    assert typed.excerpt(Frame(0, "<cell 1>", 1, "f")).doubt == ""


@pytest.mark.parametrize(
    "source", ["call(\n    1,\n", "x = \x00\n1\n", "print 'old'\n    1,\n", "(" * 500 + "\n1\n"]
)
def test_source_that_does_not_parse_is_shown_by_its_lines(source: str) -> None:
    assert excerpt(source, 2).lines == (source.split("\n")[1].strip(),)


def test_lines_are_counted_and_decoded_as_python_does() -> None:
    assert excerpt("a = 1\r\nb = (\r\n  2)\r\n", 3).lines == ("b = (", "  2)")
    assert excerpt("a = '\x0c\u2028'\nb = 2\n", 2).lines == ("b = 2",)
    latin = "# -*- coding: latin-1 -*-\nä = 1\n".encode("latin-1")
    assert excerpt(latin, 2).lines == ("ä = 1",)
    assert excerpt(b"\xef\xbb\xbfa = 1\n", 1).lines == ("a = 1",)
    assert excerpt(b"# coding: no-such-coding\na = 1\n", 2).lines is None


def test_what_cannot_be_read_is_not_shown() -> None:
    sources = Sources(lambda _: None, {})
    assert sources.excerpt(Frame(0, FILE, 3, "f")).lines is None
    assert excerpt("a = 1\n", 7).lines is None
    assert excerpt("a = 1\n", 0).lines is None


def test_each_file_is_read_once() -> None:
    reads: list[str] = []

    def read(path: str) -> bytes:
        reads.append(path)
        return b"a = 1\nb = 2\n"

    sources = Sources(read, {})
    for line in (1, 2, 1):
        sources.excerpt(Frame(0, FILE, line, "f"))
    assert reads == [FILE]


def test_read_source_reads_files_and_what_shells_keep(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"a = 1\r\n")
    assert read_source(str(path)) == b"a = 1\r\n"
    assert read_source(str(path) + "x") is None
    assert read_source("\x00") is None
    assert read_source("/dev/zero") is None
    assert read_source(str(tmp_path)) is None
    linecache.cache["<cell 1>"] = (6, None, ["b = 2\n"], "<cell 1>")
    try:
        assert read_source("<cell 1>") == b"b = 2\n"
    finally:
        del linecache.cache["<cell 1>"]
