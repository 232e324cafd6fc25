"""Inline values as text in, text out: each in ``‹...›`` at the end of its line, hints left out."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shapetrace.events.stop import Stop, StoppedFunction
from shapetrace.server.features.inline_values import inline_values
from shapetrace.server.file_records import Call
from shapetrace.server.messages.settings import HintOptions
from shapetrace.server.pin_and_focus import PinAndFocus
from shapetrace.server.scope import Scope
from shapetrace.server.view import DocumentView
from tests.python.unit.server.annotated import Shown, plain, show
from tests.support.recorder import PRELUDE

_VALUE = re.compile(r"  ‹[^›]*›")

OUT = 10**6

PROGRAM = """
    def other(x):
        return x.mean()
    def main(x, *, mask):
        if mask.any():{condition}
            x = torch.cat(
                [x * 2,{double}
                 x + 1],{plus}
                dim=1,
            ){cat}
        assert len(x) == 2
        id(x.sum() > 0){sum}
        y = x @ x.mT{y}
        y.mean(){mean}
        return y - 1{minus}
    other(torch.ones(3))
    main(torch.ones(2, 3), mask=torch.ones(2, 3) > 0)
"""

NOTHING = dict.fromkeys(
    ("condition", "double", "plus", "cat", "sum", "y", "mean", "minus"),
    "",
)


def expected(**texts: str) -> str:
    """The program with values."""
    marked = {name: f"  ‹{text}›" for name, text in texts.items()}
    return plain(PROGRAM).format(**{**NOTHING, **marked})


def values(
    shown: Shown,
    function: str = "main",
    reached: Callable[[Call], bool] = lambda call: True,
    first: int = 0,
    last: int = OUT,
    file: Path | None = None,
    **options: Any,
) -> str:
    """The document with what is shown beside its hints, while a function is focused."""
    process = next(iter(shown.store.processes("session").values()))
    calls = {call.id for call in process.ops.values() if reached(call)}
    scopes = PinAndFocus(shown.store)
    path = str(file or shown.path)
    stop = Stop(None, StoppedFunction(path, function, 1, frozenset(calls)))
    scopes.set_focus(Scope(process.number, None, stop))
    scope_path, records = scopes.scope_path, scopes.records(shown.document.key)
    assert scope_path is not None
    assert records is not None
    view = DocumentView(shown.document, records, records.base.text or "")
    lines = list(shown.document.lines)
    for each in inline_values(view, scope_path, first, last, HintOptions(**options)):
        lines[each.line] += f"  ‹{each.text}›"
    return "\n".join(lines).removeprefix(PRELUDE)


@pytest.fixture
def shown(tmp_path: Path) -> Shown:
    """The program, run and open."""
    return show(_VALUE.sub("", expected()), tmp_path / "program.py")


def test_lines_without_a_hint_tell_their_expressions(shown: Shown) -> None:
    assert values(shown) == expected(
        condition="mask.any() bool[]",
        double="x * 2 f32[2,3]",
        plus="x + 1 f32[2,3]",
        sum="x.sum() > 0 bool[]",
    )


def test_where_hints_are_off_everything_is_told(shown: Shown) -> None:
    text = values(shown, position="off")
    head = "def main(x, *, mask):"
    assert text.replace(f"{head}  ‹x f32[2,3], mask bool[2,3]›", head) == expected(
        condition="mask.any() bool[]",
        double="x * 2 f32[2,3]",
        plus="x + 1 f32[2,3]",
        cat="f32[2,6]",
        sum="x.sum() > 0 bool[]",
        y="f32[2,2]",
        mean="f32[]",
        minus="f32[2,2]",
    )


def test_where_parameters_have_no_hints_they_are_told(shown: Shown) -> None:
    text = values(shown, parameters=False)
    assert "def main(x, *, mask):  ‹x f32[2,3], mask bool[2,3]›\n" in text


def test_what_was_not_reached_is_not_told(shown: Shown) -> None:
    def is_before_the_sum(call: Call) -> bool:
        return (call.line or 0) < 10

    text = values(shown, reached=is_before_the_sum, position="off")
    head = "def main(x, *, mask):"
    assert text.replace(f"{head}  ‹x f32[2,3], mask bool[2,3]›", head) == expected(
        condition="mask.any() bool[]",
        double="x * 2 f32[2,3]",
        plus="x + 1 f32[2,3]",
        cat="f32[2,6]",
    )


def test_only_the_focused_function_is_told_of(shown: Shown, tmp_path: Path) -> None:
    assert values(shown, "other", position="off") == expected().replace(
        "def other(x):\n    return x.mean()",
        "def other(x):  ‹x f32[3]›\n    return x.mean()  ‹f32[]›",
    )
    assert values(shown, "gone", position="off") == expected()
    assert values(shown, file=tmp_path / "other.py", position="off") == expected()


def test_only_the_lines_that_are_asked_about_are_told_of(shown: Shown) -> None:
    everything = values(shown, position="off").split("\n")
    nothing = expected().split("\n")
    # The prelude is one line.
    for first in range(1, 18):
        for last in range(first, 18):
            text = values(shown, first=first, last=last, position="off").split("\n")
            assert text == [
                (everything if first <= number <= last else nothing)[number - 1]
                for number in range(1, len(text) + 1)
            ]


def test_a_long_expression_is_cut(tmp_path: Path) -> None:
    text = """
        def main(x):
            if (x.reshape(2, 3, 1).transpose(0, 1)
                    .contiguous().view(-1)).any():
                pass
        main(torch.ones(2, 3))
    """
    shown = show(text, tmp_path / "program.py")
    assert [line for line in values(shown).split("\n") if "‹" in line] == [
        "    if (x.reshape(2, 3, 1).transpose(0, 1)  ‹x.reshape(2, 3, 1).transpose(0,… f32[3,2,1]›",
        (
            "            .contiguous().view(-1)).any():"
            "  ‹contiguous() f32[3,2,1], view(-1) f32[6], any() bool[]›"
        ),
    ]
