"""The extension in a real editor: how soon a hint is there, how long activation takes."""

from __future__ import annotations

import json
import statistics
import subprocess
from pathlib import Path

from tests.bench.results import Bar, Result

ROOT = Path(__file__).resolve().parents[2]


def editor(quick: bool) -> Result:
    """What `scripts/showcase/measure.ts` finds; the VSIX has to be there."""
    done = subprocess.run(
        ["node", "--import", "tsx", "scripts/showcase/measure.ts"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    figures = json.loads(done.stdout.splitlines()[-1])
    hints, activations = figures["hints"], figures["activations"]
    megabytes = figures["bytes"] / 1e6
    return Result(
        (
            Bar(
                "first hint",
                f"from the call to the screen, {len(hints)} lines of a running program",
                "≤ 300 ms",
                f"{statistics.median(hints):.0f} ms (at most {max(hints):.0f})",
                max(hints) <= 300,
            ),
            Bar(
                "activation",
                f"of the extension, in {len(activations)} windows",
                "≤ 150 ms",
                f"{statistics.median(activations):.0f} ms "
                f"({min(activations):.0f} – {max(activations):.0f})",
                statistics.median(activations) <= 150,
            ),
            Bar(
                "VSIX",
                "one file for every platform",
                "≤ 10 MB",
                f"{megabytes:.1f} MB",
                megabytes <= 10,
            ),
        )
    )
