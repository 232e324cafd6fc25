"""Where statements are and what they produce."""

from __future__ import annotations

import pytest

from shapetrace.server.ranges import SourceRange
from shapetrace.server.source_structure import Structure
from tests.python.unit.server.annotated import plain

# A statement or its head is marked by the place behind its end.
HEADS = """
    @decorated(
        lambda: 1
    )
    def f(
        a=lambda: {1: 2},  # ):
        *,
        b: int = 3,  # a comment: here
    ) -> dict[str, int]:^  # another: one
        "a: docstring"^
        if a:^ return^; b = {1: 2}^
        elif (
            b
        ):^
            pass^
        else:
            for x, y in {1: 2}.items():^
                with open(a) as c, open(
                    b
                ) as d  :^
                    yield x[1:2]^
        while True:^ break^
        try:^
            raise ValueError(
                a
            )^
        except (
            ValueError
        ) as e:
            del e^
        finally:
            a = \\
                b^
        match a:^
            case {"x": 1}:
                pass^
            case [1, *rest] if rest:
                pass^
        class A(B, c=3):^
            x: int^
            async def g():^
                async for q in r:^ pass^
        class C:^ pass^
        class D  :  # a: b^
            pass^
"""


def test_heads_end_with_their_colon() -> None:
    marked = plain(HEADS)
    structure = Structure(marked.replace("^", ""))
    assert structure.tree is not None
    lines = [list(line) for line in structure.lines]
    for statement in sorted(structure.statements, key=lambda each: each.range.end, reverse=True):
        where = statement.range
        lines[where.end_line - 1].insert(where.end_column, "^")
    assert "\n".join("".join(line) for line in lines) == marked.replace("  # a: b^", "^  # a: b")


def test_positions_lead_to_the_innermost_part() -> None:
    structure = Structure("def f(a, b=g(1)):\n    return [x.y(a + b)[0] for x in a if x]\n")

    def at(line: int, column: int) -> list[str]:
        return [type(node).__name__ for node in structure.path(line, column)[1:]]

    assert at(1, 6) == ["FunctionDef", "arguments", "arg"]
    assert at(1, 13) == ["FunctionDef", "arguments", "Call", "Constant"]
    call = ["FunctionDef", "Return", "ListComp", "Subscript", "Call"]
    assert at(2, 14) == [*call, "Attribute"]
    assert at(2, 15) == [*call, "Attribute"]
    assert at(2, 16) == [*call, "BinOp", "Name"]
    assert at(2, 18) == [*call, "BinOp"]
    assert at(2, 22) == call[:-1]
    assert at(2, 12)[-2:] == ["Attribute", "Name"]
    assert at(2, 40)[-2:] == ["comprehension", "Name"]
    assert at(3, 0) == []


def test_functions_have_the_names_that_python_gives_them() -> None:
    text = plain("""
        class A:
            def f(self):
                def g():
                    class B:
                        async def h(self): pass
                    return B
                return g
        if True:
            @property
            def k(): return lambda: 1
    """)
    structure = Structure(text)
    names = [function.qualified_name for function in structure.functions]
    assert names == ["A.f", "A.f.<locals>.g", "A.f.<locals>.g.<locals>.B.h", "k"]
    inside = [structure.function_at(line) for line in (1, 2, 5, 6, 7, 9)]
    assert [function and function.qualified_name for function in inside] == [
        None,
        "A.f",
        "A.f.<locals>.g.<locals>.B.h",
        "A.f.<locals>.g",
        "A.f",
        "k",
    ]
    assert [len(function.returns) for function in structure.functions] == [1, 1, 0, 1]


@pytest.mark.parametrize(
    "text",
    ["def f(:", "\0", "x = (", "(" * 400 + ")" * 400],
    ids=["syntax", "null", "open", "deep"],
)
def test_what_cannot_be_parsed_has_no_tree(text: str) -> None:
    structure = Structure(text)
    assert structure.tree is None
    assert structure.functions == ()
    assert structure.path(1, 0) == []


NEWER = """
    def f(x, *args, y=None):
        a = x + 1
        q, k = g(x)  # two
        a == 3
        s = "a # b"
        return a * 2  # last
    broken = (
"""


def test_lines_of_source_for_a_newer_python_still_say_something() -> None:
    structure = Structure(plain(NEWER))
    assert structure.tree is None
    found = [
        (
            statement.kind,
            statement.function,
            [part.name for part in statement.parts],
            [text_of(structure, part.value) for part in statement.parts],
        )
        for statement in structure.statements
    ]
    assert found == [
        ("parameters", "f", ["x", "args", "y"], [None, None, None]),
        ("assignment", None, ["a"], ["x + 1"]),
        ("assignment", None, ["q", "k"], [None, None]),
        ("assignment", None, ["s"], ['"a # b"']),
        ("return", None, [None], ["a * 2"]),
        ("assignment", None, ["broken"], ["("]),
    ]


def text_of(structure: Structure, where: SourceRange | None) -> str | None:
    return (
        None if where is None else structure.lines[where.line - 1][where.column : where.end_column]
    )
