"""Programs with and without Shapetrace in every mode: ``npm run soak [-- --program WORDS ...]``.

Each program runs twice without Shapetrace, so that what differs by itself is known, and then once
in each mode. What runs in the debugger is compared with the debugger without Shapetrace.

``npm run soak -- endurance`` runs the checks of ``endurance.py`` instead.
"""

import argparse
import json
import sys
import time
from pathlib import Path

from tests.soak import endurance
from tests.soak.outcome import Outcome, differences, run
from tests.soak.table import DEBUGGER, MODES, ROWS

RESULTS = Path(__file__).parents[2] / "build" / "soak.json"


def main() -> int:
    """Run the table, print a line for each cell, and keep the results."""
    if sys.argv[1:2] == ["endurance"]:
        return endurance.main(sys.argv[2:])
    parser = argparse.ArgumentParser(prog="npm run soak --", description=__doc__)
    parser.add_argument("--program", action="append", default=[])
    parser.add_argument("--mode", action="append", default=[])
    chosen = parser.parse_args()
    RESULTS.parent.mkdir(exist_ok=True)
    results: dict[str, dict[str, list[str]]] = (
        json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    )
    bad = 0
    for program in ROWS:
        if chosen.program and not any(word in program.title for word in chosen.program):
            continue
        plain: Outcome = run(program, None)
        control = run(program, None)
        cells = results.setdefault(program.title, {})
        unsteady = [it for it in differences(program, plain, control) if "traced" not in it]
        if plain.code != program.exit_code or unsteady:
            # Nothing can be said of a program that fails by itself, or is another each time.
            bad += 1
            print(f"{program.title}: WITHOUT US {plain.code} {unsteady} {plain.errors[-600:]}")
            continue
        for mode in MODES:
            if chosen.mode and not any(word in mode.title for word in chosen.mode):
                continue
            began = time.monotonic()
            before = run(program, DEBUGGER) if mode.command == "debug" else plain
            found = differences(program, before, run(program, mode))
            cells[mode.title] = found
            bad += bool(found)
            took = time.monotonic() - began
            print(f"{program.title} | {mode.title} | {found or 'alike'} ({took:.0f} s)", flush=True)
            RESULTS.write_text(json.dumps(results, indent=1))
    print(f"{bad} cells differ")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
