"""Random functions: no claim about a variable is wrong, though all tensors differ in their size."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from tests.python.unit.recorder.random_functions import programs
from tests.support.examples import examples
from tests.support.reference.claims import judge
from tests.support.reference.programs import traced, watched


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("random") / "program.py"


@pytest.mark.slow
@examples(200)
@given(program=programs())
def test_nothing_wrong_is_claimed(program: str, path: Path) -> None:
    path.write_text(program, encoding="utf-8")
    verdict = judge(traced(path), watched(path), (str(path),))
    assert verdict.wrong == (), program
