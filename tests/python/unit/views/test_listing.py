from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

import pytest

from shapetrace.events.model import Frame, Op, Trace
from shapetrace.views import ViewOptions, render
from shapetrace.views.place_text import place_text
from shapetrace.views.source_excerpts import Sources
from shapetrace.views.view_options import ReadSource
from tests.python.unit.views import programs
from tests.python.unit.views.builder import FOLDER, Recording, f32

SOURCE_LINE = re.compile(r"^(?P<depth>(?:│ )*).*  # (?P<place>\S+:\d+)(?: \(.*\))? in .*:$")
OP_LINE = re.compile(r"^(?P<depth>(?:│ )*)# (?P<text>.*)$")


def listing(recording: Recording, read_source: ReadSource | None = None) -> str:
    source = read_source or recording.read_source
    options = ViewOptions(width=300, base=FOLDER, read_source=source, verbose=True)
    return render(recording.trace(), "listing", options)


def place_of(op: Op, trace: Trace, recording: Recording) -> str:
    """The place that the listing names for an op: where its statement begins."""
    frame = next(frame for frame in trace.frames if frame.id == op.stack[-1])
    start = Sources(recording.read_source, trace.run.files).excerpt(frame).numbers[0]
    return place_text(frame.file, start, FOLDER)


@pytest.mark.parametrize(
    "program", [programs.attention, programs.failure, programs.generation, programs.statements]
)
def test_the_nearest_source_line_above_an_op_made_it(program: Callable[[], Recording]) -> None:
    recording = program()
    trace = recording.trace()
    expected = [place_of(op, trace, recording) for op in trace.ops]
    found = []
    place, depth = "", 0
    for line in listing(recording).splitlines():
        source, op = SOURCE_LINE.match(line), OP_LINE.match(line)
        if source:
            place, depth = source["place"], len(source["depth"])
        elif op and "looked at" not in op["text"]:
            assert len(op["depth"]) > depth
            found.append(place)
    assert found == expected


def test_two_calls_of_a_function_on_one_line_are_told_apart() -> None:
    recording = Recording({"twice.py": "def f(x):\n    return x * 2\n\n\nf(a) + f(b)\n"})
    for call in ("f(a)", "f(b)"):
        with recording.function(("<module>", call)):
            recording.op("torch.Tensor.mul", "{0} * 2", ("f", "x * 2"), [f32(2)], [f32(2)])
    assert listing(recording).count("⬇️ f\n") == 2
    assert listing(recording).count("f(a) + f(b)") == 2


def test_source_that_cannot_be_had_is_said_to_be_missing() -> None:
    text = listing(programs.failure(), read_source=lambda _: None)
    assert re.search(r"│ │ <source not available> +# net.py:3 in Head.forward:\n", text)
    assert "# f32[2,512] @ f32[256,10]" in text


def test_source_that_changed_is_said_to_have_changed() -> None:
    text = listing(programs.failure(), read_source=lambda _: b"other\n" * 20)
    assert re.search(r"│ │ other +# net.py:3 \(changed since\) in Head.forward:\n", text)


def test_python_s_own_frames_are_passed_over_unless_asked_for() -> None:
    recording = Recording({"a.py": "copy.deepcopy(model)\n"})
    with recording.function(("<module>", "copy.deepcopy(model)")):
        recording.op("torch.clone", "clone({0})", ("<module>", "model"), [f32(2)], [f32(2)])
    trace = recording.trace()
    library = "/usr/lib/python3.11/copy.py"
    frames = (
        trace.frames[0],
        Frame(7, library, 153, "deepcopy"),
        Frame(8, library, 271, "_reconstruct"),
        *trace.frames[1:],
    )
    first, last = trace.frames[0].id, trace.frames[1].id
    op = dataclasses.replace(trace.ops[0], stack=(first, 7, 8, last))
    changed = dataclasses.replace(trace, frames=frames, ops=(op,))
    for verbose, shown in ((False, False), (True, True)):
        options = ViewOptions(read_source=recording.read_source, verbose=verbose)
        assert ("_reconstruct" in render(changed, "listing", options)) is shown


def test_a_comprehension_is_part_of_its_line() -> None:
    recording = Recording({"a.py": "parts = [x[i] for i in range(3)]\n"})
    with recording.function(("f", "[x[i] for i in range(3)]")):
        place = ("f.<locals>.<listcomp>", "x[i]")
        recording.op("torch.Tensor.__getitem__", "{0}[0]", place, [f32(3, 2)], [f32(2)], count=3)
    source, op = listing(recording).splitlines()[2:]
    assert re.fullmatch(r"parts = \[x\[i\] for i in range\(3\)\] +# a.py:1 in f:", source)
    assert op == "│ # f32[3,2][0] -> f32[2]  ×3"
