"""Whether a trace has every call that an independent mode sees, and a value for every line.

The models, the reference mode and the watcher of lines are those of the tests.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import shapetrace
from shapetrace.events.model import Trace
from tests.bench.results import Bar, Result, Table
from tests.models.case import ModelCase
from tests.models.observe import assigned_lines, program_of, reference_calls, traced
from tests.support.reference.calls import calls_of_trace, difference
from tests.support.reference.claims import judge

CASES_OF_A_QUICK_RUN = 4
HEADER = ("model", "calls", "the same in the trace", "only in it", "lines", "with a value", "wrong")


def exactness(quick: bool) -> Result:
    """Compare every call and every tensor-assigning line of each model, one by one."""
    cases = list(_cases())
    rows = [_row(case) for case in (cases[:CASES_OF_A_QUICK_RUN] if quick else cases)]
    columns = zip(*(row[1:] for row in rows), strict=True)
    calls, same, surplus, lines, covered, wrong = map(sum, columns)
    models = f"{len(rows)} models"
    bars = (
        Bar(
            "exactness",
            f"calls of {models}, each with its columns, shapes and types",
            "100 % of a reference mode's",
            f"{same:,} of {calls:,}, {surplus} besides",
            same == calls and not surplus,
        ),
        Bar(
            "exactness",
            f"executed tensor-assigning lines of {models}",
            "≥ 95 % have a value, 0 wrong",
            f"{covered / lines:.1%} of {lines:,}, {wrong} wrong",
            covered >= 0.95 * lines and not wrong,
        ),
    )
    table = Table("Exactness", HEADER, tuple(tuple(map(str, row)) for row in rows))
    return Result(bars, tables=(table,))


def _cases() -> Iterator[ModelCase]:
    from tests.models import torch_nn_cases

    yield from torch_nn_cases.CASES
    if importlib.util.find_spec("transformers"):
        from tests.models import transformers_cases

        yield from transformers_cases.CASES
    if importlib.util.find_spec("diffusers"):
        from tests.models import diffusers_cases

        yield from diffusers_cases.CASES


def _row(case: ModelCase) -> tuple[str, int, int, int, int, int, int]:
    _, trace = traced(case)
    wanted = reference_calls(case)
    found = calls_of_trace(_expanded(case) if case.fused else trace)
    same = (wanted & found).total()
    if not difference(wanted, found):
        same = wanted.total()  # some of them stand under sizes that widened
    verdict = judge(trace, assigned_lines(case), case.own)
    surplus = found.total() - same
    wrong = len(verdict.wrong)
    return case.name, wanted.total(), same, surplus, verdict.lines, verdict.covered, wrong


def _expanded(case: ModelCase) -> Trace:
    """A trace with the fused parts opened, as the reference mode opens them too."""
    program = program_of(case).fresh()
    with shapetrace.trace(program.model, expand_fused=True) as recording:
        program()
    return recording.trace
