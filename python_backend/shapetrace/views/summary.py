"""The words above and below a view: which program ran, how much was seen, what was not."""

from __future__ import annotations

import shlex

from shapetrace.events.model import Coverage, Run, Trace
from shapetrace.views.call_text import count_text, total_calls
from shapetrace.views.place_text import short_path
from shapetrace.views.styled import Line, cells, cut_middle, cut_to_cells, printable
from shapetrace.views.view_options import ViewOptions

SEPARATOR = " · "

_LEAST_PROGRAM = 16
"""Columns that the program's name keeps, however much else there is to say."""


def header(trace: Trace, options: ViewOptions) -> Line:
    """``train.py --epochs 1 · torch 2.13.0 · 1 forward pass · 14 module calls · 33 ops``."""
    facts = SEPARATOR.join(run_facts(trace))
    program = program_text(trace.run, options.base)
    if not program:
        return ((cut_to_cells(facts, options.columns), "note"),)
    room = max(options.columns - cells(facts) - cells(SEPARATOR), _LEAST_PROGRAM)
    program = cut_middle(program, room)
    left = options.columns - cells(program)
    return ((program, "heading"), (cut_to_cells(SEPARATOR + facts, left), "note"))


def program_text(run: Run, base: str | None) -> str:
    """The command that ran, with its script named as short as can be."""
    if not run.argv or not run.argv[0]:
        return ""
    return printable(shlex.join([short_path(run.argv[0], base), *run.argv[1:]]))


def run_facts(trace: Trace) -> list[str]:
    """Facts about the whole run, each in a few words."""
    run = trace.run
    facts: list[str] = []
    if run.torch:
        facts.append(printable(f"torch {run.torch}"))
    if run.rank is not None and run.world_size is not None:
        facts.append(f"rank {run.rank} of {run.world_size}")
    if run.passes:
        facts.append(counted(run.passes, "forward pass", "forward passes"))
    if trace.modules:
        facts.append(counted(total_calls(trace.modules), "module call"))
    facts.append(counted(total_calls(op for op in trace.ops if op.level == "torch"), "op"))
    kernels = total_calls(op for op in trace.ops if op.level != "torch")
    if kernels:
        facts.append(counted(kernels, "kernel"))
    return facts


def closing(trace: Trace, options: ViewOptions) -> list[Line]:
    """Notes: code that ran and was not recorded, or that nothing was recorded."""
    lines: list[Line] = []
    if not trace.modules and not trace.ops:
        reason = "." if trace.coverage else ": no tensor operation ran while tracing."
        lines.append(((f"Nothing was recorded{reason}", "note"),))
    if trace.coverage:
        lines += [(), (("Not looked at:", "note"),)]
        lines += [_coverage_line(entry, options) for entry in trace.coverage]
    return lines


def coverage_text(entry: Coverage, base: str | None) -> str:
    """``torch.compile region  model.py:41  ×3``."""
    where = short_path(entry.where, base) if entry.where[:1] in ("/", "\\") else entry.where
    parts = [printable(entry.reason), printable(where), count_text(entry.count)]
    return "  ".join(part for part in parts if part)


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """``1 op``, ``33 ops``."""
    return f"{number} {singular if number == 1 else plural or singular + 's'}"


def human_number(number: int) -> str:
    """A large number in three digits: ``402k``, ``1.24M``."""
    if number < 1000:
        return str(number)
    scaled = float(number)
    for unit in ("k", "M", "B", "T"):
        scaled /= 1000
        if scaled < 999.5 or unit == "T":
            digits = 2 if scaled < 9.995 else 1 if scaled < 99.95 else 0
            return f"{scaled:.{digits}f}{unit}"
    raise AssertionError("unreachable: the last unit always fits")


def _coverage_line(entry: Coverage, options: ViewOptions) -> Line:
    return ((cut_to_cells(f"  {coverage_text(entry, options.base)}", options.columns), "note"),)
