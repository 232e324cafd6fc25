"""Other Pythons than the one that runs the tests, which have nothing but their standard library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
OLDEST = (3, 11)


def interpreters() -> list[Path]:
    """Those that pyenv has, from the oldest supported version on, and this one."""
    found = [Path(sys.executable)]
    for folder in sorted(Path("~/.pyenv/versions").expanduser().glob("3.*")):
        version = tuple(int(part) for part in folder.name.split(".")[:2] if part.isdigit())
        if version >= OLDEST and (folder / "bin" / "python").exists():
            found.append(folder / "bin" / "python")
    return found


def checked(python: Path, check: Path) -> str:
    """What a script prints, which is told where the backend and the repository are.

    It must not fail, nor warn of anything.
    """
    result = subprocess.run(
        [python, "-W", "error", check, ROOT / "python_backend", ROOT],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout
