"""Prints how exactly each real model is traced: ``python tests/models/coverage_table.py``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

if __name__ == "__main__":
    TOP = Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(TOP), str(TOP / "python_backend")]
    os.environ.setdefault("OMP_NUM_THREADS", "1")

from tests.models import diffusers_cases, torch_nn_cases, transformers_cases
from tests.models.case import ModelCase
from tests.models.observe import assigned_lines, plain, reference_calls, traced
from tests.support.reference.calls import calls_of_trace, difference
from tests.support.reference.claims import Verdict, judge

COLUMNS = ("model", "torch calls", "as the reference", "same bits", "lines", "with value", "wrong")


def row(case: ModelCase) -> tuple[str, ...]:
    """Trace a case and tell how it went."""
    results, trace = traced(case)
    verdict: Verdict = judge(trace, assigned_lines(case), case.own)
    calls = calls_of_trace(trace)
    if case.fused:
        agreement = "fused, stepped around"
    else:
        agreement = "yes" if not difference(reference_calls(case), calls) else "NO"
    return (
        case.name,
        str(calls.total()),
        agreement,
        "NO" if plain(case).difference(results) else "yes",
        str(verdict.lines),
        f"{verdict.percentage:.1f} %",
        str(len(verdict.wrong)),
    )


def table(cases: tuple[ModelCase, ...]) -> str:
    """Lay the rows out as a Markdown table."""
    rows = [COLUMNS, *map(row, cases)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["| " + " | ".join(map(str.ljust, cells, widths)) + " |" for cells in rows]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(transformers_cases.CASES + diffusers_cases.CASES + torch_nn_cases.CASES))
