"""Random functions: no claim about a variable is wrong, though all tensors differ in their size."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.python.unit.recorder.random_functions import programs
from tests.support.reference.claims import judge
from tests.support.reference.programs import traced, watched

DETERMINED = settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=200,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("random") / "program.py"


@DETERMINED
@given(program=programs())
def test_nothing_wrong_is_claimed(program: str, path: Path) -> None:
    path.write_text(program, encoding="utf-8")
    verdict = judge(traced(path), watched(path), (str(path),))
    assert verdict.wrong == (), program
