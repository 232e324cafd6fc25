"""What the programs of the table do by themselves, and in our modes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.python.e2e.compiled.table import PROGRAMS, Outcome, lines_of
from tests.support.kept_outcomes import KeptOutcome

Alike: TypeAlias = Callable[..., Outcome]


@pytest.fixture
def alike(tmp_path: Path) -> Alike:
    """Runs the table in one of our modes: Dynamo has to have seen nothing else."""

    def check(*command: str) -> Outcome:
        found, outcome = lines_of(tmp_path, *command)
        kept = KeptOutcome("what Dynamo makes of each program")
        plain = kept.read()
        if plain is None or differing(plain, found):
            plain = by_themselves(tmp_path)
        assert differing(plain, found) == {}
        kept.keep(plain)
        return outcome

    return check


def by_themselves(folder: Path) -> dict[str, Any]:
    """What Dynamo makes of each program, by its kind."""
    found, _ = lines_of(folder, str(PROGRAMS))
    assert sum(line["counters"].get("frames", {}).get("ok", 0) for line in found.values()) > 100
    return found


def differing(plain: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """The programs of which Dynamo makes something else."""
    return {
        kind: (line, found.get(kind)) for kind, line in plain.items() if line != found.get(kind)
    }
