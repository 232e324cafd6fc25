"""Program text to a running program in a real file, observed by either side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

import shapetrace
from shapetrace.events.model import Trace
from tests.support.reference.calls import Call, calls_of_trace
from tests.support.reference.lines import LineWatch, watch_lines
from tests.support.reference.mode import ReferenceMode

STATEMENT_WORDS = frozenset({"for", "while", "with", "if", "elif", "assert"})


def starting_names(path: Path) -> dict[str, Any]:
    """Return the names that a program finds, so that it need not make them under observation."""
    torch.manual_seed(0)
    return {
        "__name__": "__main__",
        "__file__": str(path),
        "torch": torch,
        "nn": torch.nn,
        "F": torch.nn.functional,
        "x": torch.randn(2, 3),
        "y": torch.randn(2, 3),
        "w": torch.randn(3, 4),
        "b": torch.randn(3),
    }


def run_file(path: Path, names: dict[str, Any]) -> None:
    """Execute a source file as a program."""
    exec(compile(path.read_bytes(), str(path), "exec"), names)


def traced(path: Path) -> Trace:
    """Run a file under the recorder."""
    names = starting_names(path)
    with shapetrace.trace() as recording:
        run_file(path, names)
    return recording.trace


def watched(path: Path) -> LineWatch:
    """Run a file while watching its assignments."""
    names = starting_names(path)
    with watch_lines([str(path)]) as watch:
        run_file(path, names)
    return watch


def observed_by_reference(path: Path) -> Counter[Call]:
    """Count the calls that the reference mode sees in a file."""
    names = starting_names(path)
    with ReferenceMode() as mode:
        run_file(path, names)
    return mode.count()


def observed_by_recorder(path: Path) -> Counter[Call]:
    """Count the calls that the recorder sees in a file."""
    return calls_of_trace(traced(path))


def segment(path: Path, call: Call) -> str:
    """Cut out of the source what a call's columns, counted in bytes, span.

    Where the interpreter gives a call the position of a whole statement, or of a truth test, the
    versions differ in what they span: of those only the line is told.
    """
    if call.file != str(path):
        return Path(call.file).name
    if call.column is None or call.end_column is None or call.end_line is None:
        return f"line {call.line}"
    lines = path.read_bytes().splitlines(keepends=True)[call.line - 1 : call.end_line]
    lines[-1] = lines[-1][: call.end_column]
    lines[0] = lines[0][call.column :]
    text = " ".join(part.strip() for part in b"".join(lines).decode().splitlines())
    is_statement = text.split()[0] in STATEMENT_WORDS
    return f"line {call.line}" if is_statement or call.name.endswith("__bool__") else text


def render(path: Path, calls: Counter[Call]) -> str:
    """List the calls: source segment, function, output, and what is out of the ordinary.

    What torch does within itself without any tensor differs between its versions and is not listed.
    """
    return "".join(f"{row}\n" for row in _rows(path, calls))


def _rows(path: Path, calls: Counter[Call]) -> Iterator[str]:
    for call, count in calls.items():
        if not (call.direct or call.inputs or call.outputs):
            continue
        outputs = " ".join(map(str, call.outputs)).replace("float32", "f32").replace("int64", "i64")
        result = f"raises {call.error}" if call.error else outputs or "no tensor"
        name = call.name.removeprefix("torch.")
        row = f"{segment(path, call)} => {name} {result}"
        yield row + ("" if call.direct else " inside") + (f" ×{count}" if count > 1 else "")
