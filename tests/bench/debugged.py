"""The program that is debugged: ``debugged.py WORKLOAD FILE``.

Writes how many seconds its forward passes took into the file. Knows nothing of Shapetrace.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from statistics import median

# In place of this folder, which the interpreter has put there.
sys.path[:1] = [str(Path(__file__).resolve().parents[2])]

import torch  # noqa: E402

from tests.bench.workloads import Workload, real_work, tiny_encoder  # noqa: E402

WARM_SECONDS = 0.8
WARM_PASSES = 24
"""Until a recording has settled, or has heard of a breakpoint and stays awake."""


def passes(
    workload: Workload, *, warm_seconds: float, warm_passes: int, seconds: float
) -> dict[str, float]:
    """How long the first pass took, and the median of those that come after the warm ones."""
    model, inputs, clock = workload.model, workload.inputs, time.perf_counter
    times: list[float] = []
    warm = 0
    before = began = clock()
    # One loop for all, as the same call from another line would be something new to see.
    while not warm or len(times) == warm or before - began < seconds:
        model(*inputs)
        after = clock()
        times.append(after - before)
        before = after
        if not warm and len(times) >= warm_passes and after - began >= warm_seconds:
            warm, began = len(times), after
    return {"first pass": times[0], "pass": median(times[warm:])}


def never() -> None:
    """Has the breakpoint that is not hit."""
    print("hit")  # @never


def main(name: str, path: str) -> None:
    """Run a workload."""
    torch.set_num_threads(1)
    figures: dict[str, float] = {}
    if name == "one layer":
        torch.nn.Linear(3, 4)(torch.ones(2, 3))
    elif name == "tiny encoder":
        figures = passes(
            tiny_encoder("train"),
            warm_seconds=WARM_SECONDS,
            warm_passes=WARM_PASSES,
            seconds=0.6,
        )
    else:
        workload = real_work()
        with workload.setting():
            figures = passes(workload, warm_seconds=0.0, warm_passes=1, seconds=0.0)
    Path(path).write_text(json.dumps(figures), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
