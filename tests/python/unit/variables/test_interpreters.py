"""Following without torch, in each Python that is there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.python.unit.instrument.test_interpreters import ROOT, interpreters


@pytest.mark.parametrize("python", interpreters(), ids=str)
def test_torch_is_not_needed_and_not_imported(python: Path) -> None:
    check = Path(__file__).with_name("check_interpreter.py")
    result = subprocess.run(
        [python, "-W", "error", check, ROOT / "python_backend", ROOT],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("fine")
    assert result.stdout.rstrip().endswith("False")
