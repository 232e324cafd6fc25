"""Every form of expression and statement: program text in, its calls with their source out.

The reference mode is held to the same expected text as the recorder, so that neither is trusted
because of the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import TypeAlias

import pytest

# torch 2.8 makes calls as this is imported, which the reference would tell of.
import torch._dynamo  # noqa: F401

from tests.python.unit.recorder import (
    corpus_of_expressions,
    corpus_of_functions,
    corpus_of_statements,
)
from tests.support.reference.calls import Call, difference
from tests.support.reference.programs import observed_by_recorder, observed_by_reference, render

Observer: TypeAlias = Callable[[Path], Counter[Call]]

EXAMPLES = [
    *corpus_of_expressions.EXAMPLES.items(),
    *corpus_of_statements.EXAMPLES.items(),
    *corpus_of_functions.EXAMPLES.items(),
]
TITLES, TEXTS = zip(*EXAMPLES, strict=True)


def split(text: str, path: Path) -> str:
    """Write an example's program to a file and return the calls it is expected to make."""
    program, expected = dedent(text).removeprefix("\n").split("----\n")
    path.write_text(program, encoding="utf-8")
    return expected


@pytest.mark.parametrize("observe", [observed_by_reference, observed_by_recorder])
@pytest.mark.parametrize("text", TEXTS, ids=TITLES)
def test_calls_are_tied_to_their_expressions(text: str, observe: Observer, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    expected = split(text, path)
    assert render(path, observe(path)) == expected


@pytest.mark.slow
@pytest.mark.parametrize("text", TEXTS, ids=TITLES)
def test_recorder_and_reference_agree_on_every_detail(text: str, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    split(text, path)
    assert difference(observed_by_reference(path), observed_by_recorder(path)) == ""


def test_no_title_is_used_twice() -> None:
    assert len(set(TITLES)) == len(EXAMPLES)
