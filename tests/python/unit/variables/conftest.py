from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.python.unit.variables.programs import Program


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Callable[..., Program]]:
    """Loads programs, which are forgotten afterwards."""
    made: list[Program] = []

    def load(*values: str) -> Program:
        made.append(Program(tmp_path, *values))
        return made[-1]

    yield load
    for each in made:
        sys.modules.pop(each.name, None)
