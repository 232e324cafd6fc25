"""``run --fingerprint --level aten``: Dynamo compiles what it would compile without us."""

from __future__ import annotations

import pytest

from tests.python.e2e.compiled.conftest import Alike
from tests.python.e2e.compiled.table import PROGRAMS

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]


def test_dynamo_sees_nothing_of_kernels_and_fingerprints(alike: Alike) -> None:
    how = ("--passes", "all", "--level", "aten", "--fingerprint")
    outcome = alike("-m", "shapetrace", "run", *how, str(PROGRAMS))
    assert "fault in Shapetrace" not in outcome.stdout
