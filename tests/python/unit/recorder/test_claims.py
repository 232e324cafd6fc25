"""What the trace says a name was worth is what it was worth, however misleading the line."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.python.unit.recorder.corpus_of_traps import TRAPS
from tests.support.reference.calls import calls_of_trace, difference
from tests.support.reference.claims import judge
from tests.support.reference.programs import observed_by_reference, traced, watched


@pytest.fixture(params=list(TRAPS.values()), ids=list(TRAPS))
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """One trap as a program in a file."""
    file = tmp_path / "program.py"
    file.write_text(dedent(request.param) + "main()\n", encoding="utf-8")
    return file


@pytest.mark.slow
def test_no_claim_is_wrong(path: Path) -> None:
    verdict = judge(traced(path), watched(path), (str(path),))
    assert verdict.lines > 0
    assert not verdict.wrong, str(verdict)


def test_calls_are_those_of_the_reference(path: Path) -> None:
    assert difference(observed_by_reference(path), calls_of_trace(traced(path))) == ""
