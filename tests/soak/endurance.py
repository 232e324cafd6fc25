"""What a program goes through besides its own work: ``npm run soak -- endurance [NAME ...]``.

Interrupts at random, ends by signals, a million calls, an hour of generation, servers that die, and
machines without a temporary folder or with a clock that is set back. Each check prints one line.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from shapetrace.transport.session_address import VARIABLE, SessionAddress, write_address
from tests.support import language_client
from tests.support.machine import has_namespaces

ROOT = Path(__file__).parents[2]
BACKEND = ROOT / "python_backend"
PROGRAMS = Path(__file__).parent / "programs"

RUN = ["run", "--view", "none", "-o", "ours.json"]
MODES: dict[str, list[str]] = {
    "run --passes all": [*RUN, "--passes", "all"],
    "--fingerprint": [*RUN, "--passes", "all", "--fingerprint"],
    "--level aten": [*RUN, "--passes", "all", "--level", "aten"],
    "--watch": [*RUN, "--watch", "h"],
    "capture": ["capture", "--values", "forward", "--values", "forward.h", "-o", "ours.h5"],
}

language_client.PATIENCE = 300
"""The machine may be busy with a soak beside this one."""

Started = subprocess.Popen[str]


def environment(folder: Path) -> dict[str, str]:
    """Return what programs run with."""
    given = {name: value for name, value in os.environ.items() if not name.startswith("SHAPETRACE")}
    paths = os.pathsep.join((str(BACKEND), str(PROGRAMS)))
    return given | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


@contextlib.contextmanager
def start(
    script: str,
    *arguments: str,
    options: list[str],
    folder: Path,
    within: tuple[str, ...] = (),
    variables: dict[str, str] | None = None,
) -> Iterator[Started]:
    """Start a program under Shapetrace; without options, as it is. It is killed in the end."""
    command = [*within, sys.executable, *(["-m", "shapetrace", *options] if options else [])]
    process = subprocess.Popen(
        [*command, str(PROGRAMS / script), *arguments],
        cwd=folder,
        env=environment(folder) | (variables or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def line_of(process: Started, beginning: str) -> str:
    """Return the next line that begins so; ``--watch`` prints its own between them."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(beginning):
            return line
    _, errors = process.communicate()
    raise AssertionError(
        f"ended with {process.returncode} before it said {beginning!r}: {errors[-2000:]}"
    )


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """Make a folder to run programs in."""
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        yield Path(name)


def interrupts(count: int) -> str:
    """Send SIGINT at random moments; the program catches each and counts."""
    ours = 0
    rounds: dict[str, list[str]] = {"plain": [], **MODES}
    for options in rounds.values():
        with folder() as place, start("interrupted.py", options=options, folder=place) as process:
            line_of(process, "ready")
            chance = random.Random(1)
            for number in range(count):
                time.sleep(chance.uniform(0, 0.03))
                os.kill(process.pid, signal.SIGINT)
                _, caught, has_ours = line_of(process, "caught").split()
                assert caught == str(number), (options, caught, number)
                ours += int(has_ours)
            os.kill(process.pid, signal.SIGUSR1)
            _, errors = process.communicate(timeout=120)
            assert process.returncode == 0, (options, process.returncode, errors[-800:])
    return f"{count * len(rounds)} interrupts, none lost, {ours} tracebacks with a frame of ours"


def ends(count: int) -> str:
    """End programs by SIGTERM, SIGKILL and an uncaught interrupt at random moments."""
    checked = 0
    chance = random.Random(2)
    for options in MODES.values():
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGINT):
            for _ in range(count):
                with (
                    folder() as place,
                    start("endless.py", options=options, folder=place) as process,
                ):
                    line_of(process, "ready")
                    time.sleep(chance.uniform(0, 0.3))
                    os.kill(process.pid, number)
                    _, errors = process.communicate(timeout=120)
                    assert process.returncode == -number, (options, number, process.returncode)
                    assert "shapetrace/" not in errors.replace(str(place), ""), errors
                    left = [it for it in place.iterdir() if it.name.startswith("ours")]
                    for file in left:
                        shown = subprocess.run(
                            [sys.executable, "-m", "shapetrace", "show", str(file)],
                            env=environment(place),
                            capture_output=True,
                            text=True,
                        )
                        assert shown.returncode in (0, 2), shown.stderr
                        assert "Traceback" not in shown.stderr, shown.stderr
                    checked += 1
    return f"{checked} programs ended as without us; what they left can be read"


def calls(number: int) -> str:
    """Run a program of so many calls in each mode, and see how its memory grows."""
    said = []
    for title, options in {"plain": [], **MODES}.items():
        arguments = ("many_calls.py", str(number))
        with folder() as place, start(*arguments, options=options, folder=place) as process:
            output, errors = process.communicate(timeout=7200)
            assert process.returncode == 0, errors[-800:]
            said.append(f"{title} {json.loads(output.splitlines()[-1])['grown']:.1f} MB")
    return f"{number} calls; grown after the first tenth: " + ", ".join(said)


def generation(seconds: float) -> str:
    """Generate text for so long under the recorder, and see how memory grows."""
    options = ["run", "--view", "none", "--passes", "all", "-o", "ours.json"]
    arguments = ("long_generation.py", str(seconds))
    with folder() as place, start(*arguments, options=options, folder=place) as process:
        output, errors = process.communicate(timeout=seconds + 600)
        assert process.returncode == 0, errors[-800:]
        last = json.loads(output.splitlines()[-1])
        size = (place / "ours.json").stat().st_size / 1e6
    return (
        f"{last['tokens']} tokens in {seconds / 60:.0f} minutes; grown after the first tenth: "
        f"{last['grown']:.1f} MB; trace of {size:.1f} MB"
    )


def servers(times: int) -> str:
    """Kill the language server so many times while one program is debugged."""
    shown = 0
    with folder() as place:
        script = place / "training.py"
        script.write_text((PROGRAMS / "endless.py").read_text())
        opened: dict[str, Any] = {}
        process: Started | None = None
        try:
            for number in range(times + 1):
                client = language_client.Client(place / "storage")
                client.start()
                asked = {"session": "soak", "name": "training.py", "mode": "debug", **opened}
                opened = client.request("shapetrace/openSession", asked)
                if process is None:
                    process = _debugged(script, opened, place)
                uri = client.open(script)
                # A new process of the server has the hints of its journal at once; that the
                # program has come back to it is known by its own word.
                client.wait(partial(_has_come_back, client))
                client.wait(partial(_shows_hints, client, uri))
                shown += 1
                assert process.poll() is None, process.communicate()[1]
                if number < times:
                    client.kill()
                else:
                    os.kill(process.pid, signal.SIGTERM)
                    client.wait(partial(_is_gone, client))
                    assert client.stop() == 0
        finally:
            if process is not None:
                process.kill()
                process.communicate()
    return f"killed {times} times, hints shown again {shown - 1} times"


def _has_come_back(client: language_client.Client) -> bool:
    return any(each["state"] in ("recording", "settled") for each in client.statuses)


def _shows_hints(client: language_client.Client, uri: str) -> bool:
    return len(client.places(uri)) >= 4


def _is_gone(client: language_client.Client) -> bool:
    return client.statuses[-1]["state"] == "gone"


def _debugged(script: Path, opened: dict[str, Any], place: Path) -> Started:
    address = SessionAddress("soak", opened["port"], opened["token"])
    return subprocess.Popen(
        [sys.executable, "-m", "debugpy", "--listen", "127.0.0.1:0", str(script)],
        cwd=place,
        env=environment(place) | {VARIABLE: write_address(address)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def surroundings() -> str:
    """Run a program without a temporary folder, without a home, with a clock that is set back."""
    said = []
    if has_namespaces():
        for options in MODES.values():
            _run_without_temporary_folder(options)
        said.append("no temporary folder")
    else:
        said.append("(no namespaces here: the temporary folder was left alone)")
    for options in MODES.values():
        with folder() as place:
            _ends_well(
                "plain_training.py", options=options, folder=place, variables={"HOME": "/nowhere"}
            )
    said.append("no home")
    if shutil.which("faketime"):
        library = next(Path("/usr/lib").rglob("libfaketime.so.1"))
        for options in MODES.values():
            with folder() as place:
                _run_while_the_clock_is_set_back(options, place, library)
        said.append("a clock that is set back by three days")
    else:
        said.append("(no faketime here: the clock was left alone)")
    return ", ".join(said)


def _run_without_temporary_folder(options: list[str]) -> None:
    """First in a folder where Python can make temporary files instead, then in none."""
    build = ROOT / "build"
    build.mkdir(exist_ok=True)
    empty = 'for each in /tmp /var/tmp; do mount -t tmpfs -o ro none "$each"; done'
    script = f'{empty}; cd "$0"; exec "$@"'
    within = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", script)
    with tempfile.TemporaryDirectory(prefix="soak-", dir=build) as name:
        place = Path(name)
        _ends_well("plain_training.py", options=options, folder=place, within=(*within, name))
        results = [it for it in place.iterdir() if it.name.startswith("ours")]
        assert len(results) == 1, results
        results[0].unlink()
        elsewhere = [str(place / it) if it.startswith("ours") else it for it in options]
        # torch.optim cannot be imported there.
        arguments = ("many_calls.py", "5000")
        _ends_well(*arguments, options=elsewhere, folder=place, within=(*within, "/tmp"))
        assert results[0].exists()


def _run_while_the_clock_is_set_back(options: list[str], place: Path, library: Path) -> None:
    clock = place / "clock"
    clock.write_text("+0")
    faked = {
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }
    with start(
        "endless.py", "seconds=3", options=options, folder=place, variables=faked
    ) as process:
        line_of(process, "ready")
        clock.write_text("-3d")
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, (options, errors[-800:])


def _ends_well(*arguments: str, **how: Any) -> None:
    with start(*arguments, **how) as process:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, (arguments, how, errors[-800:])
        assert "Traceback" not in errors, errors


CHECKS: dict[str, Callable[[bool], str]] = {
    "interrupts": lambda quick: interrupts(20 if quick else 200),
    "ends": lambda quick: ends(1 if quick else 4),
    "calls": lambda quick: calls(20_000 if quick else 1_000_000),
    "generation": lambda quick: generation(30 if quick else 3600),
    "servers": lambda quick: servers(3 if quick else 20),
    "surroundings": lambda quick: surroundings(),
}


def main(arguments: list[str]) -> int:
    """Run the checks that are named, or all."""
    # A shell has what it starts in the background ignore Ctrl-C, and so would what is started here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser(prog="npm run soak -- endurance", description=__doc__)
    parser.add_argument("name", nargs="*", help=f"of {', '.join(CHECKS)}")
    parser.add_argument("--quick", action="store_true", help="less of each")
    chosen = parser.parse_args(arguments)
    failed = 0
    for name, check in CHECKS.items():
        if chosen.name and name not in chosen.name:
            continue
        began = time.monotonic()
        try:
            said = check(chosen.quick)
        except AssertionError as error:
            failed += 1
            said = f"FAILED: {error}"
        print(f"{name}: {said} ({time.monotonic() - began:.0f} s)", flush=True)
    return 1 if failed else 0
