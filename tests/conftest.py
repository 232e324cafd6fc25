"""What all tests in Python have in common."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.support.interrupting import import_lock_let_go

# No test fails for being slow: the machine may be busy with others.
settings.register_profile(
    "patient", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("patient")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse names with addresses, by which processes that share the tests disagree on them."""
    for item in items:
        if " at 0x" in item.name:
            raise pytest.UsageError(f"{item.nodeid} has another name in each process")


def pytest_collection_finish() -> None:
    """Have the garbage collector leave alone what all tests import: a million objects."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def import_lock_is_free() -> Iterator[None]:
    """Fail a test after which no other thread could import."""
    yield
    assert not import_lock_let_go(), "the test has kept the import system's lock"
