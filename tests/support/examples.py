"""How many examples tests of many draw, and how."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

ONE_IN = int(os.environ.get("SHAPETRACE_ONE_IN", "1"))
"""Of random programs, damages and interrupted instructions one in so many is tried.

That is for those who run all tests on another Python as well, and have no time to run them whole.
"""


def some(number: int) -> int:
    """Return how many of so many examples are tried."""
    return max(number // ONE_IN, 1)


def same_examples(number: int) -> settings:
    """So many examples, which are the same in each run, however long and large they are."""
    return settings(
        derandomize=True,
        database=None,
        deadline=None,
        max_examples=some(number),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
