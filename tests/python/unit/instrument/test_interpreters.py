"""The package without torch, in each Python that is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.interpreters import checked, interpreters


@pytest.mark.slow
@pytest.mark.parametrize("python", interpreters(), ids=str)
def test_the_package_works_without_torch(python: Path) -> None:
    output = checked(python, Path(__file__).with_name("check_interpreter.py"))
    assert output.startswith("fine")
    assert output.rstrip().endswith("False")
