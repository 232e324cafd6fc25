"""Whether a trace has every call that an independent mode sees, on the same columns.

Both sides come from the tests: the models nobody here wrote, and the reference mode.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import shapetrace
from tests.bench.results import Bar, Result, Table
from tests.models.case import ModelCase
from tests.support.reference.calls import calls_of_trace, difference
from tests.support.reference.mode import ReferenceMode

QUICK = 4


def exactness(quick: bool) -> Result:
    """Compare every call of each model, one by one."""
    rows: list[tuple[str, ...]] = []
    seen = expected = 0
    cases = list(_cases())
    for case in cases[:QUICK] if quick else cases:
        wanted, found, surplus = _compare(case)
        rows.append((case.name, str(wanted), str(found), str(surplus)))
        expected += wanted
        seen += found
    bar = Bar(
        "exactness",
        f"calls of {len(rows)} models, each with its columns and shapes",
        "100 % of a reference mode's",
        f"{seen:,} of {expected:,}",
        seen == expected and not any(int(row[3]) for row in rows),
    )
    table = Table(
        "Exactness", ("model", "calls", "the same in the trace", "only in it"), tuple(rows)
    )
    return Result((bar,), tables=(table,))


def _cases() -> Iterator[ModelCase]:
    from tests.models import torch_nn_cases

    yield from torch_nn_cases.CASES
    if importlib.util.find_spec("transformers"):
        from tests.models import transformers_cases

        yield from transformers_cases.CASES
    if importlib.util.find_spec("diffusers"):
        from tests.models import diffusers_cases

        yield from diffusers_cases.CASES


def _compare(case: ModelCase) -> tuple[int, int, int]:
    """The calls of the reference, how many of them the trace has, and how many it has besides."""
    program = case.build()
    with ReferenceMode() as mode:
        program.fresh()()
    with shapetrace.trace(expand_fused=case.fused) as trace:
        program.fresh()()
    wanted, found = mode.count(), calls_of_trace(trace.trace)
    same = (wanted & found).total()
    if not difference(wanted, found):
        same = wanted.total()  # some of them stand under sizes that widened
    return wanted.total(), same, found.total() - same
