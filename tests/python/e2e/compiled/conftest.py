"""What the programs of the table do by themselves, found out once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.python.e2e.compiled.table import PROGRAMS, Outcome, lines_of

Alike: TypeAlias = Callable[..., Outcome]


@pytest.fixture(scope="package")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What Dynamo makes of each program, by its kind."""
    found, _ = lines_of(tmp_path_factory.mktemp("plain"), str(PROGRAMS))
    assert sum(line["counters"].get("frames", {}).get("ok", 0) for line in found.values()) > 100
    return found


@pytest.fixture
def alike(plain: dict[str, Any], tmp_path: Path) -> Alike:
    """Runs the table in one of our modes: Dynamo has to have seen nothing else."""

    def check(*command: str) -> Outcome:
        found, outcome = lines_of(tmp_path, *command)
        differing = {
            kind: (line, found.get(kind)) for kind, line in plain.items() if line != found.get(kind)
        }
        assert differing == {}
        return outcome

    return check
