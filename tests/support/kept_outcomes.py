"""What programs do without us, kept from one run of the tests to the next.

It cannot change while the program, its interpreter, the packages and the tests stay as they are. An
outcome is kept once a run with us was seen to be equal. Where a later one is not, the program is
run without us once more: nothing fails for what is only remembered. With `SHAPETRACE_OUTCOMES=new`
nothing is remembered, and `npm run test:all` sets that.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from functools import cache
from hashlib import sha256
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[2]
_FOLDER = _ROOT / "build" / "outcomes"
_TESTS = ("tests/support", "tests/python/e2e")
"""The code that runs programs and looks at them."""


class KeptOutcome:
    """What a program does without us, as JSON has it."""

    def __init__(self, name: str, *inputs: str) -> None:
        self._name = name
        """Of one that takes the place of an older one."""
        digest = sha256()
        for part in (name, *_machine(), *inputs):
            digest.update(part.encode() + b"\0")
        self._digest = digest.hexdigest()
        self._file = _FOLDER / f"{sha256(f'{name} {sys.version}'.encode()).hexdigest()[:32]}.json"

    def read(self) -> Any:
        """Return the outcome; None where it is not known, or something has changed since."""
        if os.environ.get("SHAPETRACE_OUTCOMES") == "new":
            return None
        try:
            kept = json.loads(self._file.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        return kept["outcome"] if kept["digest"] == self._digest else None

    def keep(self, outcome: Any) -> None:
        """Keep an outcome, in place of the one before a change."""
        text = json.dumps(
            {"name": self._name, "digest": self._digest, "outcome": outcome}, indent=1
        )
        _FOLDER.mkdir(parents=True, exist_ok=True)
        # Another process of the tests never reads half a file.
        written = self._file.with_suffix(f".{os.getpid()}")
        written.write_text(text, encoding="utf-8")
        written.replace(self._file)


def digest_of(folder: Path, pattern: str = "*") -> str:
    """Return a digest of the files in a folder."""
    digest = sha256()
    for path in sorted(path for path in folder.rglob(pattern) if path.is_file()):
        name = path.relative_to(folder).as_posix()
        digest.update(name.encode() + b"\0" + sha256(path.read_bytes()).digest())
    return digest.hexdigest()


@cache
def digest_of_code(folder: Path) -> str:
    """Return a digest of the Python files in a folder, which stay as they are while tests run."""
    return digest_of(folder, "*.py")


@cache
def _machine() -> tuple[str, ...]:
    """Return what all outcomes depend on."""
    environment = [
        f"{name}={value}"
        for name, value in sorted(os.environ.items())
        if name.startswith(("PYTHON", "OMP_"))
    ]
    packages = sorted(f"{each.name} {each.version}" for each in distributions())
    tests = [digest_of_code(_ROOT / folder) for folder in _TESTS]
    return (sys.version, platform.platform(), *environment, *packages, *tests)
