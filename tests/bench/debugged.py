"""The program that is debugged: ``debugged.py WORKLOAD FILE``.

Writes how many seconds its forward passes took into the file. Knows nothing of Shapetrace.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

# In place of this folder, which the interpreter has put there.
sys.path[:1] = [str(Path(__file__).resolve().parents[2])]

import torch  # noqa: E402

from tests.bench.workloads import Workload, real_work, tiny_encoder  # noqa: E402

WARM_SECONDS = 1.2
WARM_PASSES = 24
"""Time enough for a recording to settle, or to hear of a breakpoint and stay awake."""


def passes(
    workload: Workload, warm_seconds: float, warm_passes: int, seconds: float
) -> list[float]:
    """The first pass, and the mean of those after the warm ones."""
    model, inputs, clock = workload.model, workload.inputs, time.perf_counter
    times: list[float] = []
    measured_from = 0
    began = before = clock()
    # One loop for all, as the same call from another line would be something new to see.
    while not measured_from or before - began < seconds or len(times) == measured_from:
        model(*inputs)
        after = clock()
        times.append(after - before)
        before = after
        if not measured_from and after - began >= warm_seconds and len(times) >= warm_passes:
            measured_from, began = len(times), after
    return [times[0], sum(times[measured_from:]) / (len(times) - measured_from)]


def never() -> None:
    """Where the breakpoint is that is not hit."""
    print("hit")  # @never


def main(name: str, path: str) -> None:
    """Run a workload."""
    torch.set_num_threads(1)
    figures: list[float] = []
    if name == "trivial":
        torch.nn.Linear(3, 4)(torch.ones(2, 3))
    elif name == "tiny encoder":
        figures = passes(tiny_encoder("train"), WARM_SECONDS, WARM_PASSES, seconds=1.5)
    else:
        workload = real_work()
        with workload.setting():
            figures = passes(workload, 0, 1, seconds=2.0)
    Path(path).write_text(json.dumps(figures), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
