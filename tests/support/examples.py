"""How random tests draw their examples."""

from __future__ import annotations

from hypothesis import HealthCheck, settings


def same_examples(number: int) -> settings:
    """So many examples, which are the same in each run, however long and large they are."""
    return settings(
        derandomize=True,
        database=None,
        deadline=None,
        max_examples=number,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
