"""Running one program in one mode, and what of it can be compared."""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.soak.table import DEBUGGER, PROGRAMS, Mode, Program
from tests.support.session_server import SessionServer

ROOT = Path(__file__).parents[2]
BACKEND = ROOT / "python_backend"
TIME_LIMIT = 900


@dataclass(frozen=True)
class Outcome:
    """What a program printed, left behind and ended with."""

    code: int
    state: str
    output: str
    errors: str
    files: tuple[tuple[str, str], ...]
    traced: bool
    """Whether Shapetrace left something behind that shows it was at work."""
    prints_more: bool = False
    """Whether Shapetrace prints between the program's lines, as ``--watch`` does."""


def run(program: Program, mode: Mode | None, python: str = sys.executable) -> Outcome:
    """Run a program in a folder of its own; without a mode, as it is."""
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        folder = Path(name)
        command, environment, ended = _command(program, mode, python, folder)
        try:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            try:
                output, errors = process.communicate(timeout=TIME_LIMIT)
                code = process.returncode
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                output, errors = process.communicate()
                code = -1000
        finally:
            heard = ended()
        traces = [*folder.glob("ours*.json"), *folder.glob("ours*.h5")]
        files = tuple(
            (file, hashlib.sha256((folder / file).read_bytes()).hexdigest()[:16])
            for file in program.writes
            if (folder / file).exists()
        )
        mine = output.splitlines()
        watches = mode is not None and "--watch" in mode.options
        return Outcome(
            code=code,
            state="\n".join(line for line in mine if line.startswith("state ")),
            output=_steady(output, program, folder),
            errors=_steady(errors, program, folder),
            files=files,
            traced=bool(traces) or heard or (watches and len(mine) > output.count("state ")),
            prints_more=watches,
        )


def _command(
    program: Program, mode: Mode | None, python: str, folder: Path
) -> tuple[list[str], dict[str, str], Callable[[], bool]]:
    environment = dict(os.environ)
    for name in ("PYTHONPATH", "SHAPETRACE_SESSION"):
        environment.pop(name, None)
    environment |= {
        "OMP_NUM_THREADS": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "COLUMNS": "80",
        "HF_HUB_OFFLINE": "1",
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
        "IPYTHONDIR": str(folder / "ipython"),
    }
    script = [*program.module, str(PROGRAMS / program.script)]
    environment["PYTHONPATH"] = str(PROGRAMS)
    launch = [python, *program.python]
    if program.ranks:
        launch += ["-m", "torch.distributed.run", "--nproc-per-node", str(program.ranks)]
    if mode is None:
        return [*launch, *script], environment, lambda: False
    environment["PYTHONPATH"] = os.pathsep.join((str(BACKEND), str(PROGRAMS)))
    if mode is DEBUGGER:
        return _under_debugpy(program, launch, script), environment, lambda: False
    if mode.command == "debug":
        return _debugged(_under_debugpy(program, launch, script), environment)
    options = ["--view", "none"] if mode.command == "run" else []
    if mode.options == ("--watch",):
        options = ["--view", "none", "--watch", program.watched]
    else:
        options += mode.options
    if mode.command == "capture":
        options += ["--values", program.captured, "-o", "ours.h5"]
    else:
        options += ["-o", "ours.json"]
    return (
        [*launch, "-m", "shapetrace", mode.command, *options, *script],
        environment,
        lambda: False,
    )


def _under_debugpy(program: Program, launch: list[str], script: list[str]) -> list[str]:
    debugpy = ["-m", "debugpy", "--listen", "127.0.0.1:0"]
    if program.ranks:
        return [launch[0], *debugpy, *launch[1:], *script]
    return [*launch, *debugpy, *script]


def _debugged(
    command: list[str], environment: dict[str, str]
) -> tuple[list[str], dict[str, str], Callable[[], bool]]:
    server = SessionServer()
    server.__enter__()
    given = server.environment()
    environment |= {key: value for key, value in given.items() if key != "PYTHONPATH"}
    environment["PYTHONPATH"] = os.pathsep.join((str(BACKEND), str(PROGRAMS)))

    def ended() -> bool:
        heard = any(process.ops for process in server.all.values())
        server.__exit__(None, None, None)
        return heard

    return command, environment, ended


_OURS = re.compile(r"(-+ Captured stderr call -+\n)?(^shapetrace: .*\n)+", re.MULTILINE)
"""What we say on stderr, which pytest has captured and shows."""
_NUMBERS = re.compile(r"\b\d+(\.\d+)?\b")


def _steady(text: str, program: Program, folder: Path) -> str:
    """Return a text without what differs between two runs of any program."""
    text = _OURS.sub("", text.replace(str(folder), "FOLDER"))
    for pattern in program.unsteady:
        text = re.sub(pattern, "#", text)
    return text


def differences(program: Program, plain: Outcome, ours: Outcome) -> list[str]:
    """Return in what a run with Shapetrace differs from one without."""
    found = []
    if ours.code != plain.code:
        found.append(f"exit code {ours.code}, not {plain.code}")
    for name, before, after in (
        ("state", plain.state, ours.state),
        ("stdout", plain.output, ours.output),
    ):
        if name == "stdout" and ours.prints_more:
            after = _without_ours(before, after)
        if before != after:
            found.append(f"{name}: {_first_difference(before, after)}")
            break
    if plain.files != ours.files:
        found.append(f"files: {_first_difference(repr(plain.files), repr(ours.files))}")
    said, says = _sentences(plain.errors), _sentences(ours.errors)
    more = [line for line in says if line not in said]
    less = [line for line in said if line not in says]
    if more or less:
        found.append(f"stderr: +{more[:4]} -{less[:4]}")
    if not ours.traced:
        found.append("nothing was traced")
    return found


def _without_ours(before: str, after: str) -> str:
    """Return the lines of a text that are in another one, in their order."""
    wanted = before.splitlines()
    found: list[str] = []
    for line in after.splitlines():
        if len(found) < len(wanted) and line == wanted[len(found)]:
            found.append(line)
    return "".join(f"{line}\n" for line in found)


def _sentences(errors: str) -> list[str]:
    """Return the lines of stderr without times, process ids and our own words."""
    return [
        _NUMBERS.sub("#", line)
        for line in errors.splitlines()
        if line.strip()
        and not line.startswith(("shapetrace", "import time:"))
        and "frozen" not in line
        and "pydevd" not in line.lower()
        and "Debugger" not in line
        and "_get_related_thread" not in line  # pydevd's too, now and then
    ]


def _first_difference(before: str, after: str) -> str:
    try:
        old = json.loads(before.removeprefix("state "))
        new = json.loads(after.removeprefix("state "))
        keys = [key for key in old if old[key] != new.get(key)]
        return "; ".join(
            f"{key} {str(old[key])[:300]} -> {str(new.get(key))[:300]}" for key in keys
        )
    except ValueError:
        pass
    old_lines, new_lines = before.splitlines(), after.splitlines()
    for index, line in enumerate(old_lines):
        if index >= len(new_lines) or new_lines[index] != line:
            other = new_lines[index] if index < len(new_lines) else "(end)"
            return f"line {index + 1}: {line[:200]!r} -> {other[:200]!r}"
    return f"more: {new_lines[len(old_lines) : len(old_lines) + 3]}"
