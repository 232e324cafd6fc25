"""``run --watch``: Dynamo compiles what it would compile without us."""

from __future__ import annotations

import pytest

from tests.python.e2e.compiled.conftest import Alike
from tests.python.e2e.compiled.table import PROGRAMS

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]

NAMES = ("h", "weights", "scaled", "y", "total", "each", "all_of_it")


def test_dynamo_sees_nothing_of_watching(alike: Alike) -> None:
    options = [option for name in NAMES for option in ("--watch", name)]
    outcome = alike("-m", "shapetrace", "run", *options, str(PROGRAMS))
    assert "programs.py:57  h  f32[3,4]" in outcome.stdout
    assert "stepped around what torch.compile has compiled" in outcome.stderr
