"""``run``: Dynamo compiles what it would compile without us."""

from __future__ import annotations

import pytest

from tests.python.e2e.compiled.conftest import Alike
from tests.python.e2e.compiled.table import PROGRAMS

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]


def test_dynamo_sees_nothing_of_run(alike: Alike) -> None:
    outcome = alike("-m", "shapetrace", "run", "--passes", "all", str(PROGRAMS))
    assert "torch.compile region  a compiled function" in outcome.stdout
    assert "fault in Shapetrace" not in outcome.stdout
