"""The extension in a real editor: how soon a hint is there, how long activation takes."""

from __future__ import annotations

import json
import statistics
import subprocess
from pathlib import Path

from tests.bench.results import Bar, Result, Table

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
    tree = figures["tree"]
    first, expanded = tree["first"], tree["expanded"]
    megabytes = figures["bytes"] / 1e6
    return Result(
        (
            # Only the very first time is nothing of it in the window yet.
            _tree_bar("first rows, from the click", tree["ops"], first, max(first), 200),
            _tree_bar("rows below a node", tree["ops"], expanded, statistics.median(expanded), 50),
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
        ),
        tables=(
            Table(
                f"Trace tree of {tree['ops']:,} ops in the editor",
                ("what", "median", "at most"),
                (
                    ("first rows", *_times(tree["first"])),
                    ("first rows with a filter", *_times(tree["filtered"])),
                    ("rows below a node", *_times(expanded)),
                    ("twice as many rows, up to 2,000", *_times(tree["more"])),
                    ("a frame while these are scrolled through", *_times(tree["frames"])),
                ),
            ),
        ),
    )


def _tree_bar(case: str, ops: int, times: list[float], decisive: float, limit: float) -> Bar:
    middle, longest = _times(times)
    reached = f"{middle} (at most {longest})"
    return Bar(
        "tree in the editor", f"{case}, {ops:,} ops", f"≤ {limit} ms", reached, decisive <= limit
    )


def _times(times: list[float]) -> tuple[str, str]:
    return f"{statistics.median(times):.0f} ms", f"{max(times):.0f} ms"
