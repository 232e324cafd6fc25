"""How many examples tests of many draw, and how."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

NEW_ONES = os.environ.get("SHAPETRACE_EXAMPLES") == "new"
"""Whether examples are drawn that no run has drawn before, as `npm run test:all` does.

Otherwise they are alike in each run: what fails is then the change's fault.
"""

ONE_IN = int(os.environ.get("SHAPETRACE_ONE_IN", "1"))
"""Of random programs, damages and interrupted instructions one in so many is tried.

That is for those who run all tests on another Python as well, and have no time to run them whole.
"""


def some(number: int) -> int:
    """Return how many of so many examples are tried."""
    return max(number // ONE_IN, 1)


def examples(number: int) -> settings:
    """Return settings for so many examples, however long and large they are."""
    return settings(
        derandomize=not NEW_ONES,
        database=None,
        deadline=None,
        max_examples=some(number),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
