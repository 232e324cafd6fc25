"""An editor with its server, and the program of a test in a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.language_client import Client, running


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """An editor with its server."""
    with running(tmp_path / "storage") as running_client:
        yield running_client


@pytest.fixture
def path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """The PROGRAM of the test's module, in a folder that is not easy to name."""
    folder = tmp_path / "größe 2 #%"
    folder.mkdir()
    file = folder / "mödel.py"
    file.write_text(request.module.PROGRAM, encoding="utf-8")
    return file
