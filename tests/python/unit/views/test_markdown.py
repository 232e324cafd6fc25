from __future__ import annotations

import dataclasses
import re

from shapetrace.events.model import DimensionRange, ErrorInfo, Tensor, Trace
from shapetrace.views import ViewOptions, render
from tests.python.unit.views import programs
from tests.python.unit.views.builder import FOLDER


def report(trace: Trace, *, verbose: bool = False) -> str:
    return render(trace, "markdown", ViewOptions(base=FOLDER, verbose=verbose))


def cells_of(row: str) -> list[str]:
    """The cells of a table row, as GitHub splits it."""
    return re.split(r"(?<!\\)\|", row)[1:-1]


def test_every_row_has_as_many_cells_as_its_table_whatever_stands_in_it() -> None:
    trace = programs.attention().trace()
    ops = tuple(
        dataclasses.replace(op, form=f"{op.form} | `a` ``b`` <b> \\", name="a|b")
        for op in trace.ops
    )
    modules = tuple(
        dataclasses.replace(module, path=f"{module.path}|`", class_name="`|")
        for module in trace.modules
    )
    columns = 0
    rows = 0
    for line in report(dataclasses.replace(trace, ops=ops, modules=modules)).splitlines():
        if not line.startswith("|"):
            columns = 0
            continue
        columns = columns or len(cells_of(line))
        assert len(cells_of(line)) == columns, line
        rows += 1
    assert rows > 20


def many(trace: Trace, times: int) -> Trace:
    """The same things happening over and over."""
    step = 1000
    modules = [
        dataclasses.replace(
            module,
            id=module.id + step * number,
            parent=None if module.parent is None else module.parent + step * number,
        )
        for number in range(times)
        for module in trace.modules
    ]
    ops = [
        dataclasses.replace(
            op,
            id=op.id + step * number,
            module=None if op.module is None else op.module + step * number,
        )
        for number in range(times)
        for op in trace.ops
    ]
    return dataclasses.replace(trace, modules=tuple(modules), ops=tuple(ops))


def test_a_long_report_can_still_be_pasted_and_says_what_it_leaves_out() -> None:
    trace = many(programs.generation().trace(), 60)
    text = report(trace)
    assert len(text) < 65_000
    left_out = re.findall(r"… and (?:the ops of )?(\d+) more (row|module)", text)
    assert {what for _, what in left_out} == {"row", "module"}
    shown = sum(line.startswith("| `") and "gpt.py" in line for line in text.splitlines())
    module_rows = text.split("## Ops")[0].count("\n| `")
    assert module_rows + int(left_out[0][0]) == len(trace.modules)
    assert shown > module_rows
    assert "more row" not in report(trace, verbose=True)
    assert "## Not looked at" in text


def test_an_error_that_no_op_raised_is_told_by_its_module() -> None:
    trace = programs.failure().trace()
    error = ErrorInfo("ValueError", "the batch is empty\n  ```` expected 2")
    modules = tuple(
        dataclasses.replace(module, error=error if module.path == "body" else None)
        for module in trace.modules
    )
    text = report(dataclasses.replace(trace, modules=modules, ops=()))
    section = text.split("## ValueError")[1].split("## Modules")[0]
    assert "`````\nthe batch is empty\n  ```` expected 2\n`````" in section
    assert "- Module: `body (Flatten)`" in section
    assert "- Where: `net.py:8` in `Net.forward`" in section
    assert "- Op:" not in section


def test_each_error_is_told_once() -> None:
    assert report(programs.failure().trace()).count("second line") == 1


def test_ranges_read_as_ranges() -> None:
    trace = programs.failure().trace()
    tensor = Tensor((DimensionRange(1, 512), 64), "float32")
    modules = tuple(dataclasses.replace(module, inputs=(tensor,)) for module in trace.modules)
    assert "`f32[1..512,64]`" in report(dataclasses.replace(trace, modules=modules))
