"""Random modules that run with hooks: they do what they do, and a debugger sees the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.python.unit.instrument.random_modules import check_module
from tests.support.examples import examples


@pytest.mark.slow
@examples(250)
@given(seed=st.integers(0, 10**9))
def test_a_random_module_is_heard_and_not_disturbed(seed: int) -> None:
    check_module(seed)
