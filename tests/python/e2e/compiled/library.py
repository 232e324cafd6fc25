"""The programs of the table, each with the library's own ways of looking around it."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable, Iterator
from typing import Any

import shapetrace
from shapetrace import ModelTracer, Tracer, TracingMode, auto_diff, var_tracker
from tests.python.e2e.compiled import programs

PATHS = ["forward", "forward.x", "forward.h", "part", "part.forward.h", "helped.weights"]
WAYS: tuple[Callable[[], Any], ...] = (
    shapetrace.trace,
    lambda: TracingMode(quiet=True),
    lambda: Tracer().trace(programs.model),
)
turn = 0
captured = 0


@contextlib.contextmanager
def watched() -> Iterator[None]:
    global turn, captured
    turn += 1
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        with WAYS[turn % len(WAYS)](), ModelTracer(programs.model, PATHS) as tracer:
            yield
        captured += len(tracer.results)


def within(run: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def run_within(model: Any) -> Any:
        with watched():
            return run(model)

    return run_within


def main(arguments: list[str]) -> None:
    auto_diff(file=io.StringIO())(programs.scale)
    var_tracker("h", file=io.StringIO())(programs.Part.forward)
    told: list[object] = []
    var_tracker("weights", handler=told.append)(programs.Model.helped)
    for name, run in programs.KINDS.items():
        if name not in programs.USING_THE_LIBRARY:
            programs.KINDS[name] = within(run)
    programs.watched = watched
    programs.main(arguments)
    print(captured, "captured,", len(told), "told")


if __name__ == "__main__":
    main(sys.argv[1:])
