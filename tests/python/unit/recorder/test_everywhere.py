"""The trace of a program is row for row the same on every Python.

A file of expectations was written once, and each Python that the tests run on is held against it.
Left out is what Python itself does in another way: a ``while`` that asks a tensor is one place from
3.14 on, and two before; and in a comprehension, a variable of the function around it is out of
reach from 3.12 on if one of the comprehension has its name.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import shapetrace
from tests.python.unit.recorder.everywhere.listing import listing

FOLDER = Path(__file__).parent / "everywhere"
PROGRAMS = ("targets", "comprehensions", "conditions", "statements")


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_python_tells_the_same(name: str, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text((FOLDER / f"{name}.txt").read_text("utf-8"), encoding="utf-8")
    code = compile(path.read_bytes(), str(path), "exec")
    with shapetrace.trace() as recording:
        exec(code, {"__name__": "program", "__file__": str(path)})
    told = listing(recording.trace, str(path))
    expected = FOLDER / f"{name}.expected.txt"
    if os.environ.get("UPDATE_EXPECTED"):
        expected.write_text(told, encoding="utf-8")
    assert told == expected.read_text("utf-8")


def test_variables_that_are_cells_inside_of_comprehensions_end_no_process() -> None:
    def function(rows):
        doubled = [row * 2 for row in rows]
        made = [(lambda: row + 1)() for row in rows]
        return doubled, made

    import torch

    with shapetrace.trace() as recording:
        function(torch.ones(2, 3))
    assert [op.count for op in recording.trace.ops if op.direct] == [1, 2, 2]
