"""The library: Dynamo compiles what it would compile without us."""

from __future__ import annotations

import re

import pytest

from tests.python.e2e.compiled.conftest import Alike

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]


def test_dynamo_sees_nothing_of_the_library(alike: Alike) -> None:
    outcome = alike("-m", "tests.python.e2e.compiled.library")
    (counts,) = re.findall(r"(\d+) captured, (\d+) told", outcome.stdout)
    assert all(int(count) > 10 for count in counts)
