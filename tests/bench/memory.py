"""How much memory a recording that is still running holds."""

from __future__ import annotations

import gc
import os
import tempfile
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

import shapetrace
from tests.bench.results import Bar, Result, Table

Sites = Callable[[torch.Tensor], None]
"""A function that makes one call on each of its lines."""

SITES = 100
LINES_IN_A_FUNCTION = 100
MEGABYTE = 1_000_000


def repeated_calls(quick: bool) -> Result:
    """A million calls at a hundred places, with shapes that stay and with shapes that never do."""
    calls = 100_000 if quick else 1_000_000
    sites = _functions(["x + 1"] * SITES, SITES)[0]
    same = torch.ones(8)
    bars = []
    for case, size in (("the same shapes", None), ("a new shape at every pass", 1)):
        with shapetrace.trace():
            sites(same)
        gc.collect()
        before = resident_bytes()
        with shapetrace.trace() as trace:
            for number in range(calls // SITES):
                sites(same if size is None else torch.ones(number + 1))
            grown = resident_bytes() - before
        recorded = sum(op.count for op in trace.ops if op.name.endswith("add"))
        if recorded != calls:
            raise AssertionError(f"{recorded} calls were recorded, {calls} were made")
        bars.append(
            Bar(
                "memory",
                f"{calls:,} ops at {SITES} sites, {case}",
                "≤ 10 MB more (resident)",
                f"{grown / MEGABYTE:.1f} MB",
                grown <= 10 * MEGABYTE,
            )
        )
    return Result(tuple(bars))


def distinct_records(quick: bool) -> Result:
    """What one more record costs, where every call is at a place of its own."""
    first, rest = (1_000, 5_000) if quick else (2_000, 20_000)
    lines = ["x + 1", "torch.cat([x, y], dim=1)", "F.linear(x, w, b)", "x.view(4, 8)"]
    functions = _functions([lines[i % len(lines)] for i in range(first + rest)])
    x = torch.ones(4, 8)
    for function in functions:
        function(x)

    tracemalloc.start()
    with shapetrace.trace() as trace:
        split = first // LINES_IN_A_FUNCTION
        sizes = [_traced_bytes_after(part, x) for part in (functions[:split], functions[split:])]
        tracemalloc.stop()
    if len(trace.ops) != first + rest:
        raise AssertionError(f"{len(trace.ops)} records were made of {first + rest} calls")
    record = (sizes[1] - sizes[0]) / rest

    layer = _bytes_of_a_layer(200 if quick else 1_000)
    bar = Bar(
        "memory",
        f"{rest:,} distinct op records (add, cat, linear, view)",
        "≤ 400 bytes each",
        f"{record:.0f} bytes",
        record <= 400,
    )
    table = Table(
        "Memory of a running recording",
        ("what", "bytes (tracemalloc)"),
        (
            ("a distinct op record", f"{record:.0f}"),
            ("an nn.Linear called once: its module call and the op in it", f"{layer:.0f}"),
        ),
    )
    return Result((bar,), tables=(table,))


def _bytes_of_a_layer(layers: int) -> float:
    few, many = (nn.Sequential(*(nn.Linear(8, 8) for _ in range(n))) for n in (50, layers + 50))
    x = torch.ones(4, 8)
    sizes = []
    with torch.no_grad():
        for model in (few, many):
            model(x)
            tracemalloc.start()
            with shapetrace.trace() as trace:
                sizes.append(_traced_bytes_after([model], x))
                tracemalloc.stop()
            if len(trace.ops) != len(list(model.children())):
                raise AssertionError("every layer should have one record")
    return (sizes[1] - sizes[0]) / layers


def _traced_bytes_after(
    functions: Sequence[Callable[[torch.Tensor], object]], x: torch.Tensor
) -> int:
    for function in functions:
        function(x)
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def _functions(expressions: list[str], size: int = LINES_IN_A_FUNCTION) -> list[Sites]:
    """Functions of one line for each expression, from a file, as any program would be."""
    names = {
        "torch": torch,
        "F": nn.functional,
        "y": torch.ones(4, 8),
        "w": torch.ones(8, 8),
        "b": torch.ones(8),
    }
    functions: list[Sites] = []
    with tempfile.TemporaryDirectory() as folder:
        for start in range(0, len(expressions), size):
            body = "\n".join(f"    {line}" for line in expressions[start : start + size])
            path = Path(folder) / f"sites_{start}.py"
            path.write_text(f"def sites(x):\n{body}\n", encoding="utf-8")
            scope: dict[str, Any] = dict(names)
            exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), scope)
            functions.append(scope["sites"])
    return functions


def resident_bytes() -> int:
    """The memory of this process that is in use now; only Linux tells it without a package."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
