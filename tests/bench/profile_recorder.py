"""Print where the recorder spends its time, for use when making it faster.

    python tests/bench/profile_recorder.py                     the tiny encoder in training mode
    python tests/bench/profile_recorder.py --setting "eval, fused path off" --level aten

Four views of repeated calls inside one recording:

- **kinds**: nanoseconds for one call of each kind, with everything in the processor's cache;
- **budget**: what a pass takes plain, under an empty mode and recorded, and what that leaves for
  each torch call and module call that is recorded;
- **lines**: the lines the recorder was on when a timer went off, which disturbs nothing; the line
  that calls the torch function itself holds the time of torch's own code too;
- **functions**: cProfile's count of calls, whose times are swollen by the profiler itself.
"""

from __future__ import annotations

import argparse
import contextlib
import cProfile
import linecache
import os
import pstats
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

os.environ["OMP_NUM_THREADS"] = "1"
ROOT = Path(__file__).resolve().parents[2]
BACKEND = ROOT / "python_backend"
sys.path[:1] = [str(ROOT), str(BACKEND)]

import torch  # noqa: E402
from torch.nn import functional  # noqa: E402

import shapetrace  # noqa: E402
from tests.bench.contenders import EMPTY, PLAIN, Contender  # noqa: E402
from tests.bench.speed import steady_turns  # noqa: E402
from tests.bench.timing import Slot, drive, ratio  # noqa: E402
from tests.bench.workloads import SETTINGS, Workload, tiny_encoder  # noqa: E402

MOST_ROWS = 40
SECONDS_OF_SAMPLES = 8.0


def main() -> None:
    """Print the four views."""
    parser = argparse.ArgumentParser(description="Profile the recorder.")
    parser.add_argument("--setting", choices=list(SETTINGS), default="train")
    parser.add_argument("--level", choices=("torch", "aten"), default="torch")
    options = parser.parse_args()
    torch.set_num_threads(1)
    workload = tiny_encoder(options.setting)
    recorded = Contender("recorded", lambda model: _recording(model, options.level))
    _print_kinds(recorded)
    _print_budget(workload, recorded)
    _print_lines(workload, recorded)
    _print_functions(workload, recorded)


class Repeating(torch.nn.Module):
    """Makes the same call a thousand times from its forward."""

    def __init__(self, call: Callable[[torch.Tensor], object]) -> None:
        super().__init__()
        self.call = call

    def forward(self, x: torch.Tensor) -> None:
        for _ in range(1000):
            self.call(x)


class Nothing(torch.nn.Module):
    """A module in which no torch function is called."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


def _print_kinds(recorded: Contender) -> None:
    linear = torch.nn.Linear(8, 8)
    kinds: dict[str, Callable[[torch.Tensor], object]] = {
        "attribute x.dtype": lambda x: x.dtype,
        "query x.dim()": lambda x: x.dim(),
        "method x.add(x)": lambda x: x.add(x),
        "function F.linear(x, w, b)": lambda x: functional.linear(x, linear.weight, linear.bias),
        "Python function F.dropout(x)": lambda x: functional.dropout(x, 0.1, False),
        "a module that does nothing": Nothing(),
        "nn.Linear": linear,
    }
    x = torch.ones(2, 4, 8)
    print(f"{'nanoseconds a call':30} {'plain':>8} {'empty':>8} {'recorded':>8} {'more':>8}")
    for name, call in kinds.items():
        workload = Workload(Repeating(call), (x,), torch.no_grad)
        seconds = drive(steady_turns((PLAIN, EMPTY, recorded), workload, 5, Slot(0.03)))
        plain, empty, traced = (
            min(value for value in seconds[item.name] if value) * 1e6
            for item in (PLAIN, EMPTY, recorded)
        )
        print(f"{name:30} {plain:8.0f} {empty:8.0f} {traced:8.0f} {traced - empty:8.0f}")
    print()


@contextlib.contextmanager
def _recording(model: torch.nn.Module, level: str) -> Iterator[torch.nn.Module]:
    with shapetrace.trace(level=level):
        yield model


def _print_budget(workload: Workload, recorded: Contender) -> None:
    seconds = drive(steady_turns((PLAIN, EMPTY, recorded), workload, rounds=12))
    plain, empty, traced = (
        min(value for value in seconds[item.name] if value) * 1e6
        for item in (PLAIN, EMPTY, recorded)
    )
    to_empty = ratio(seconds[recorded.name], seconds[EMPTY.name])
    with workload.setting(), shapetrace.trace() as trace:
        workload.model(*workload.inputs)
    calls = sum(op.count for op in trace.ops)
    modules = sum(module.count or 0 for module in trace.modules)
    print(f"plain {plain:.0f} µs, empty mode {empty:.0f} µs, recorded {traced:.0f} µs a pass")
    print(f"recorded is {to_empty.middle:.3f} × the empty mode; the bar is 1.5, the aim 1.25")
    print(
        f"{calls} torch calls and {modules} module calls are recorded: "
        f"{(traced - empty) / (calls + modules):.2f} µs each above the empty mode, "
        f"of {0.5 * empty / (calls + modules):.2f} (bar) or "
        f"{0.25 * empty / (calls + modules):.2f} (aim)\n"
    )


def _print_lines(workload: Workload, recorded: Contender) -> None:
    """Sample by a timer: Python runs the handler between two instructions of the program."""
    lines: Counter[tuple[str, int, str]] = Counter()
    total = 0

    def sample(number: int, frame: FrameType | None) -> None:
        nonlocal total
        total += 1
        if frame is not None and frame.f_code.co_filename.startswith(str(BACKEND)):
            code = frame.f_code
            lines[code.co_filename, frame.f_lineno or 0, code.co_name] += 1

    before = signal.signal(signal.SIGPROF, sample)
    with workload.setting(), recorded.watching(workload.model) as forward:
        forward(*workload.inputs)
        signal.setitimer(signal.ITIMER_PROF, 0.001, 0.001)
        end = time.perf_counter() + SECONDS_OF_SAMPLES
        while time.perf_counter() < end:
            forward(*workload.inputs)
        signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)

    print(f"{lines.total() / total:.1%} of {total} samples lay in the recorder; by line:")
    for (file, line, function), count in lines.most_common(MOST_ROWS):
        place = f"{Path(file).name}:{line} {function}"
        print(f"{count / total:6.1%}  {place:44} {linecache.getline(file, line).strip()[:70]}")
    print()


def _print_functions(workload: Workload, recorded: Contender) -> None:
    passes = 200
    profile = cProfile.Profile()
    with workload.setting(), recorded.watching(workload.model) as forward:
        forward(*workload.inputs)
        profile.enable()
        for _ in range(passes):
            forward(*workload.inputs)
        profile.disable()
    print(f"functions over {passes} passes, by the time in themselves:")
    pstats.Stats(profile).strip_dirs().sort_stats("tottime").print_stats(MOST_ROWS // 2)


if __name__ == "__main__":
    main()
