"""Random programs: the trace has the calls that the reference has, and claims nothing wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from tests.python.unit.recorder.random_programs import programs
from tests.support.examples import examples
from tests.support.reference.calls import calls_of_trace, difference
from tests.support.reference.claims import judge
from tests.support.reference.programs import observed_by_reference, traced, watched


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("random") / "program.py"


@pytest.mark.slow
@examples(300)
@given(program=programs())
def test_trace_equals_reference_and_claims_nothing_wrong(program: str, path: Path) -> None:
    path.write_text(program, encoding="utf-8")
    trace = traced(path)
    assert difference(observed_by_reference(path), calls_of_trace(trace)) == "", program
    assert judge(trace, watched(path), (str(path),)).wrong == (), program
