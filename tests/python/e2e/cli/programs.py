"""Runs a program by python and by ``shapetrace run``, each in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[4]
NOT_IMPORTED = "shapetrace: nothing to trace: the program did not import torch\n"

_UNWANTED = ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "PYTHONSAFEPATH", "PYTHONUNBUFFERED")


@dataclass(frozen=True)
class Outcome:
    code: int
    """Negative where the process died of a signal."""
    stdout: str
    stderr: str


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    environ = {name: value for name, value in os.environ.items() if name not in _UNWANTED}
    environ["PYTHONPATH"] = str(ROOT / "python_backend")
    environ["OMP_NUM_THREADS"] = "1"
    return environ | dict(extra or {})


def python(
    *arguments: str,
    cwd: Path,
    flags: Sequence[str] = (),
    extra: Mapping[str, str] | None = None,
    stdin: str = "",
) -> Outcome:
    """What ``python`` does with these arguments."""
    done = subprocess.run(
        [sys.executable, *flags, *arguments],
        cwd=cwd,
        env=environment(extra),
        input=stdin,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        timeout=120,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def shapetrace(
    *arguments: str,
    cwd: Path,
    flags: Sequence[str] = (),
    extra: Mapping[str, str] | None = None,
    stdin: str = "",
) -> Outcome:
    """What ``python -m shapetrace`` does with these arguments."""
    command = ("-m", "shapetrace", *arguments)
    return python(*command, cwd=cwd, flags=flags, extra=extra, stdin=stdin)


def by_both(
    *arguments: str,
    cwd: Path,
    flags: Sequence[str] = (),
    extra: Mapping[str, str] | None = None,
    stdin: str = "",
) -> tuple[Outcome, Outcome]:
    """What python does with a program, and what ``shapetrace run`` does with it."""
    plain = python(*arguments, cwd=cwd, flags=flags, extra=extra, stdin=stdin)
    traced = shapetrace("run", *arguments, cwd=cwd, flags=flags, extra=extra, stdin=stdin)
    return plain, traced


def without_addresses(text: str) -> str:
    """Text with the addresses of objects taken out."""
    return re.sub(r"0x[0-9a-f]+", "0x", text)


def without_progress(text: str) -> str:
    """What is on stderr without the lines that a slow machine adds."""
    return re.sub(r"shapetrace: record(ing: .* s|ed .* shows the trace)\n", "", text)
