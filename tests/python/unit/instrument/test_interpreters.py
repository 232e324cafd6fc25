"""The package without torch, in each Python that is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
OLDEST = (3, 11)


def interpreters() -> list[Path]:
    """Those that pyenv has, from the oldest supported version on, and this one."""
    found = [Path(sys.executable)]
    for folder in sorted(Path("~/.pyenv/versions").expanduser().glob("3.*")):
        version = tuple(int(part) for part in folder.name.split(".")[:2] if part.isdigit())
        if version >= OLDEST and (folder / "bin" / "python").exists():
            found.append(folder / "bin" / "python")
    return found


@pytest.mark.parametrize("python", interpreters(), ids=str)
def test_the_package_works_without_torch(python: Path) -> None:
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
