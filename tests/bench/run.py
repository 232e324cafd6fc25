"""Run the benchmarks and write docs/benchmarks.md.

    python tests/bench/run.py                    all of them, some eight minutes
    python tests/bench/run.py --quick            fewer rounds; printed, not written
    python tests/bench/run.py --only settled     one of them; printed, not written

Every benchmark runs in a process of its own, one after the other.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import pickle
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:1] = [str(ROOT)]

from tests.bench.report import markdown, summary  # noqa: E402
from tests.bench.results import Result  # noqa: E402

DOCUMENT = ROOT / "docs" / "benchmarks.md"

# Where each is: module of this folder, function.
BENCHMARKS = {
    "tiny-encoder-train": ("speed", "tiny_encoder_train"),
    "tiny-encoder-eval": ("speed", "tiny_encoder_eval"),
    "tiny-encoder-unfused": ("speed", "tiny_encoder_unfused"),
    "torchlens": ("speed", "torchlens"),
    "real-work": ("speed", "real_work_row"),
    "settled": ("speed", "settled"),
    "memory-repeated": ("memory", "repeated_calls"),
    "memory-records": ("memory", "distinct_records"),
    "capturing": ("capturing", "speed"),
    "capturing-memory": ("capturing", "memory"),
    "variables": ("variables", "speed"),
    "exactness": ("exactness", "exactness"),
    "server-start": ("server", "server_start"),
    "server-answers": ("server", "server_answers"),
    "debugpy": ("debugging", "under_debugpy"),
    "trace-tree": ("server", "trace_tree"),
    "panes": ("panes", "panes"),
    "hdf5": ("hdf5", "writing"),
    "shards": ("sharding", "scaling"),
    "idle": ("idle", "idle"),
    "editor": ("editor", "editor"),
}


def main() -> int:
    """Run what was asked for; write the document when that was everything."""
    parser = argparse.ArgumentParser(description="Run the benchmarks.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds; nothing is written")
    parser.add_argument(
        "--only",
        action="append",
        metavar="NAME",
        choices=list(BENCHMARKS),
        help=f"only this one (may be repeated); nothing is written: {', '.join(BENCHMARKS)}",
    )
    options = parser.parse_args()

    results: list[Result] = []
    started = time.monotonic()
    for name in options.only or BENCHMARKS:
        print(f"{name} ...", file=sys.stderr, flush=True)
        results.append(_in_own_process(name, options.quick))
        print(summary(results[-1]), flush=True)
    print(f"{time.monotonic() - started:.0f} seconds", file=sys.stderr)
    if not options.only and not options.quick:
        DOCUMENT.parent.mkdir(exist_ok=True)
        DOCUMENT.write_text(markdown(results, _machine()), encoding="utf-8")
        print(f"written: {DOCUMENT.relative_to(ROOT)}", file=sys.stderr)
    return 0


def _in_own_process(name: str, quick: bool) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result"
        extent = "quick" if quick else "full"
        # What the peers print on the way is shown only if the benchmark fails.
        done = subprocess.run(
            [sys.executable, str(HERE / "measure.py"), *BENCHMARKS[name], extent, str(path)],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise SystemExit(f"{name} failed:\n{done.stdout}{done.stderr}")
        result: Result = pickle.loads(path.read_bytes())
        return result


def _machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} cores, {memory:.0f} GB of memory, "
        f"Python {platform.python_version()}, torch {importlib.metadata.version('torch')}"
    )


if __name__ == "__main__":
    raise SystemExit(main())
