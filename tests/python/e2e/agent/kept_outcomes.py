"""The sessions without us that tests compare with, kept from one run of the tests to the next.

What a user sees without us cannot change while the program, its interpreter, the debugger and the
test stay as they are. An outcome is kept once a session with us was seen to be equal, and is used
where everything that it depends on is as it was. `SHAPETRACE_OUTCOMES=new` uses none.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections import Counter
from functools import cache
from hashlib import sha256
from importlib.metadata import distributions
from pathlib import Path

from tests.support.debug_client import Launch, Script

_ROOT = Path(__file__).parents[4]
_FOLDER = _ROOT / "build" / "outcomes"
_DRIVERS = ("tests/support", "tests/python/e2e")
"""Where the tests are, and what they drive the debugger with."""

_DIRECTORY = "{the program's directory}"

_SESSIONS: Counter[str] = Counter()
"""How many each test has had; what the user does differs from one to the next."""


class KeptOutcome:
    """What a user saw of a session without us, in the test that is running."""

    def __init__(self, script: Script, how: Launch) -> None:
        self._directory = str(script.path.parent)
        # As PyTest has it: the test's name and what it is at, "(call)".
        self._test = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]
        _SESSIONS[self._test] += 1
        self._session = f"{self._test} {_SESSIONS[self._test]}"
        self._digest = self._digest_of(script, how)
        name = sha256(f"{self._session} {sys.version}".encode()).hexdigest()[:32]
        self._file = _FOLDER / f"{name}.json"

    def read(self) -> list[str] | None:
        """Return what was seen; None where that is not known, or something has changed since."""
        if os.environ.get("SHAPETRACE_OUTCOMES") == "new":
            return None
        try:
            kept = json.loads(self._file.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        if kept["digest"] != self._digest:
            return None
        return [line.replace(_DIRECTORY, self._directory) for line in kept["seen"]]

    def keep(self, seen: list[str]) -> None:
        """Keep what was seen, in place of what was seen before a change."""
        lines = [line.replace(self._directory, _DIRECTORY) for line in seen]
        text = json.dumps(
            {"session": self._session, "digest": self._digest, "seen": lines}, indent=1
        )
        _FOLDER.mkdir(parents=True, exist_ok=True)
        # Another process of the tests never reads half a file.
        written = self._file.with_suffix(f".{os.getpid()}")
        written.write_text(text, encoding="utf-8")
        written.replace(self._file)

    def _digest_of(self, script: Script, how: Launch) -> str:
        """Return a digest of everything that a session depends on."""
        digest = sha256(_machine().encode())
        folder = script.path.parent
        configuration = how.configuration(script)
        for part in (self._session, str(how.debugpy), json.dumps(configuration, sort_keys=True)):
            digest.update(part.replace(self._directory, _DIRECTORY).encode() + b"\0")
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
        for place in (how.environment.get("PYTHONPATH") or "").split(os.pathsep):
            if place:
                digest.update(_sources(Path(place)).encode())
        return digest.hexdigest()


@cache
def _sources(folder: Path) -> str:
    """Return a digest of the Python files in a folder."""
    digest = sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


@cache
def _machine() -> str:
    """Return all that is the same for each session in this process, or a digest of it."""
    environment = {
        name: value for name, value in os.environ.items() if name.startswith(("PYTHON", "OMP_"))
    }
    packages = sorted(f"{each.name} {each.version}" for each in distributions())
    sources = [_sources(_ROOT / folder) for folder in _DRIVERS]
    facts = [sys.version, platform.platform(), sorted(environment.items()), packages]
    return json.dumps([*facts, *sources])
