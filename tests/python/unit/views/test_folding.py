from __future__ import annotations

import dataclasses

import pytest

from shapetrace.events.model import ErrorInfo, Frame, Op, Other, Trace
from shapetrace.views import ViewOptions, render
from tests.python.unit.views import programs
from tests.python.unit.views.builder import FOLDER, Recording, f32

SITE = f"{FOLDER}/.venv/lib/python3.11/site-packages"
LIBRARY = Frame(90, f"{SITE}/transformers/modeling_utils.py", 248, "PreTrainedModel.init_weights")
PYTHON = Frame(91, "/usr/lib/python3.11/contextlib.py", 81, "inner")


def library_calls(*, direct: bool, stack: tuple[Frame, ...], count: int = 4) -> Trace:
    """Some ops in a row that one line of the program caused."""
    recording = Recording({"train.py": programs.TRAIN_SOURCE})
    for number in range(count):
        recording.op(
            "torch.Tensor.zero_",
            "zero_({0})",
            ("<module>", "optimizer.step()"),
            [f32(number)],
            [f32(number)],
            label="zero_()",
            direct=direct,
        )
    trace = recording.trace()
    own = trace.frames[0]
    frames = (own, *stack)
    last = frames[-1]
    ops = tuple(
        dataclasses.replace(
            op,
            file=last.file,
            line=last.line,
            function=last.function,
            stack=tuple(frame.id for frame in frames),
        )
        for op in trace.ops
    )
    return dataclasses.replace(trace, ops=ops, frames=frames)


def tree(trace: Trace, *, verbose: bool = False) -> str:
    return render(trace, "tree", ViewOptions(base=FOLDER, verbose=verbose))


@pytest.mark.parametrize(
    ("direct", "stack", "title"),
    [
        (False, (), "4 ops inside torch: zero_"),
        (True, (LIBRARY,), "4 ops inside transformers: zero_"),
        (False, (LIBRARY,), "4 ops inside transformers: zero_"),
        (True, (PYTHON, LIBRARY), "4 ops inside torch: zero_"),
        (False, (PYTHON,), "4 ops inside torch: zero_"),
    ],
)
def test_library_ops_outside_modules_are_one_row_at_the_program_s_line(
    direct: bool, stack: tuple[Frame, ...], title: str
) -> None:
    trace = library_calls(direct=direct, stack=stack)
    lines = [line for line in tree(trace).splitlines() if title in line]
    assert len(lines) == 1
    assert lines[0].endswith("train.py:10")
    assert "f32[" not in tree(trace)
    assert tree(trace, verbose=True).count("zero_()") == 4


def test_the_program_s_own_ops_are_never_folded() -> None:
    assert tree(library_calls(direct=True, stack=())).count("zero_()") == 4


def test_a_few_ops_are_not_folded() -> None:
    assert tree(library_calls(direct=False, stack=(), count=2)).count("zero_()") == 2


def test_ops_of_an_installed_program_are_its_own() -> None:
    trace = library_calls(direct=True, stack=(LIBRARY,))
    installed = dataclasses.replace(trace.frames[0], file=f"{SITE}/tool/__main__.py")
    trace = dataclasses.replace(trace, frames=(installed, LIBRARY))
    assert tree(trace).count("zero_()") == 4


def test_ops_of_a_library_s_modules_are_not_folded() -> None:
    trace = library_calls(direct=True, stack=(LIBRARY,))
    module = programs.failure().trace().modules[1]
    inside = tuple(dataclasses.replace(op, id=op.id + 100, module=module.id) for op in trace.ops)
    module = dataclasses.replace(module, parent=None)
    assert tree(dataclasses.replace(trace, modules=(module,), ops=inside)).count("zero_()") == 4


def test_the_count_is_of_calls() -> None:
    trace = library_calls(direct=False, stack=())
    ops = tuple(dataclasses.replace(op, count=10) for op in trace.ops)
    assert "40 ops inside torch" in tree(dataclasses.replace(trace, ops=ops))


def test_ops_without_tensors_are_left_out_unless_they_failed() -> None:
    trace = library_calls(direct=True, stack=(), count=1)

    def without_tensors(error: ErrorInfo | None) -> str:
        op: Op = dataclasses.replace(
            trace.ops[0], inputs=(), outputs=(Other("None"),), label="switch()", error=error
        )
        return tree(dataclasses.replace(trace, ops=(op,)))

    assert "switch()" not in without_tensors(None)
    assert "switch()" in without_tensors(ErrorInfo("RuntimeError", "no"))
