"""What tests of writing have in common: a disk that is full."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator

import pytest


@pytest.fixture
def largest_file() -> Iterator[Callable[[int], None]]:
    """No file of this process may become larger, as on a full disk."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
