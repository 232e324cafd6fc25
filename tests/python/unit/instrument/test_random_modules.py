"""Random modules that run with hooks: they do what they do, and a debugger sees the same."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.python.unit.instrument.random_modules import check_module


@settings(
    max_examples=250,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(seed=st.integers(0, 10**9))
def test_a_random_module_is_heard_and_not_disturbed(seed: int) -> None:
    check_module(seed)
