"""Each view of each program as text, and what must be true of all views."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapetrace.events import codec
from shapetrace.events.model import Coverage, ErrorInfo, Op, Run, Trace
from shapetrace.views import VIEWS, ViewOptions, render
from shapetrace.views.styled import cells
from tests.python.unit.events.strategies import traces
from tests.python.unit.views import programs
from tests.python.unit.views.builder import FOLDER, Recording, f32
from tests.python.unit.views.expected import EXPECTED, assert_expected
from tests.python.unit.views.test_captured import CAPTURED
from tests.python.unit.views.test_differences_text import COMPARED
from tests.support.examples import examples

PROGRAMS: dict[str, Callable[[], Recording]] = {
    "attention": programs.attention,
    "failure": programs.failure,
    "generation": programs.generation,
    "kernels": programs.kernels,
    "statements": programs.statements,
}
SHOWN = [
    (program, view, width)
    for program in PROGRAMS
    for view, widths in {"tree": (80, 200), "listing": (80, 200), "table": (60, 80, 200)}.items()
    for width in widths
] + [(program, "markdown", 100) for program in PROGRAMS]
TEXT_VIEWS = ("tree", "listing", "table")


def options_for(recording: Recording, width: int = 100, *, verbose: bool = False) -> ViewOptions:
    return ViewOptions(width=width, base=FOLDER, read_source=recording.read_source, verbose=verbose)


def show(program: str, view: str, width: int = 100, *, verbose: bool = False) -> str:
    recording = PROGRAMS[program]()
    return render(recording.trace(), view, options_for(recording, width, verbose=verbose))


def expected_name(program: str, view: str, width: int) -> str:
    return f"{program}.{view}.md" if view == "markdown" else f"{program}.{view}.{width}.txt"


@pytest.mark.parametrize(("program", "view", "width"), SHOWN)
def test_text(program: str, view: str, width: int) -> None:
    assert_expected(expected_name(program, view, width), show(program, view, width))


@pytest.mark.parametrize("view", ["tree", "listing"])
def test_verbose_text(view: str) -> None:
    assert_expected(f"attention.{view}.verbose.txt", show("attention", view, 100, verbose=True))


def test_every_expected_file_is_compared() -> None:
    compared = {expected_name(*shown) for shown in SHOWN}
    compared |= {f"attention.{view}.verbose.txt" for view in ("tree", "listing")}
    of_traces = {path.name for path in EXPECTED.iterdir()} - set(CAPTURED) - set(COMPARED)
    assert of_traces == compared


@pytest.mark.parametrize("program", PROGRAMS)
def test_json_is_the_trace_itself(program: str) -> None:
    text = show(program, "json")
    assert codec.loads(text) == PROGRAMS[program]().trace()
    json.loads(text)


@pytest.mark.parametrize("view", TEXT_VIEWS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_no_line_is_wider_than_asked_for(program: str, view: str) -> None:
    for width in range(60, 140, 7):
        for line in show(program, view, width).splitlines():
            assert cells(line) <= width, line


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_op_and_module_can_be_found(program: str) -> None:
    recording = PROGRAMS[program]()
    trace = recording.trace()
    tree = render(trace, "tree", options_for(recording, 400, verbose=True))
    listing = render(trace, "listing", options_for(recording, 400, verbose=True))
    assert listing.count("# ") >= len(trace.ops)
    for module in trace.modules:
        assert (module.path or module.class_name) in tree
        assert (module.path or module.class_name) in listing
    for op in trace.ops:
        assert op.label.partition("(")[0] in tree


@pytest.mark.parametrize("view", VIEWS)
def test_an_empty_trace_says_so(view: str) -> None:
    run = Run((), "3.11.7", None, 1, None, None, "2026-01-01T00:00:00Z", {})
    text = render(Trace(run), view)
    assert text.endswith("\n")
    if view in TEXT_VIEWS:
        assert "Nothing was recorded: no tensor operation ran" in text
        unseen = Trace(run, coverage=(Coverage("torch.compile region", "model", 1),))
        assert "Nothing was recorded.\n\nNot looked at:" in render(unseen, view)


def hostile(trace: Trace, text: str) -> Trace:
    """The same trace with one text in place of all that came from the program."""
    error = ErrorInfo(text, text)
    return dataclasses.replace(
        trace,
        run=dataclasses.replace(trace.run, argv=(text, text), torch=text, python=text),
        modules=tuple(
            dataclasses.replace(
                module, path=text, class_name=text, detail=text, file=text, function=text, note=text
            )
            for module in trace.modules
        ),
        ops=tuple(
            dataclasses.replace(op, name=text, label=text, form=text, file=text, thread=text)
            for op in trace.ops[:-1]
        )
        + tuple(dataclasses.replace(op, form=text, error=error) for op in trace.ops[-1:]),
        frames=tuple(
            dataclasses.replace(frame, function=text, file=text) for frame in trace.frames
        ),
        coverage=tuple(
            dataclasses.replace(entry, reason=text, where=text) for entry in trace.coverage
        ),
    )


@pytest.mark.parametrize(
    "text", ["\x1b[31mred\x07", "two\nlines\r\n", "\u202edesrever", "a\tb`|<c>"]
)
@pytest.mark.parametrize("view", [view for view in VIEWS if view != "json"])
def test_nothing_from_the_program_steers_the_terminal(view: str, text: str) -> None:
    trace = hostile(PROGRAMS["generation"]().trace(), text)
    shown = render(trace, view, ViewOptions(read_source=lambda _: text.encode()))
    unseemly = {character for character in shown if not character.isprintable()}
    assert unseemly <= {"\n"}


@pytest.mark.slow
@pytest.mark.parametrize("view", VIEWS)
def test_deep_nesting_needs_no_recursion(view: str) -> None:
    module = PROGRAMS["failure"]().trace().modules[0]
    depth = 1500
    modules = tuple(
        dataclasses.replace(module, id=number, parent=number - 1 if number > 1 else None)
        for number in range(1, depth + 1)
    )
    trace = Trace(PROGRAMS["failure"]().trace().run, modules=modules)
    assert render(trace, view, ViewOptions(verbose=True)).count("Net") >= depth


@pytest.mark.slow
@pytest.mark.parametrize("view", VIEWS)
@examples(30)
@given(trace=traces, width=st.integers(-1, 250), verbose=st.booleans())
def test_any_trace_can_be_viewed(view: str, trace: Trace, width: int, verbose: bool) -> None:
    options = ViewOptions(width=width, verbose=verbose, read_source=lambda _: b"x = (1,\n2)\n" * 9)
    text = render(trace, view, options)
    assert text.endswith("\n")
    for encoding in ("ascii", "latin-1"):
        render(trace, view, options, encoding=encoding).encode(encoding)


@pytest.mark.parametrize("view", ["tree", "listing", "markdown"])
def test_failing_ops_are_never_folded(view: str) -> None:
    recording = Recording({"train.py": programs.TRAIN_SOURCE})
    error = ErrorInfo("RuntimeError", "out of memory")
    for number in range(6):
        recording.op(
            "torch.Tensor.add_",
            "add_({0})",
            ("<module>", "optimizer.step()"),
            [f32(number)],
            [],
            direct=False,
            error=error if number == 4 else None,
        )
    text = render(recording.trace(), view, options_for(recording))
    assert "4 ops inside torch: " in text
    assert "out of memory" in text
    assert "f32[4]" in text
    assert "f32[5]" in text


def test_a_module_repeated_by_its_op_is_one_row_only_where_nothing_is_lost() -> None:
    linear = next(op for op in programs.attention().trace().ops if not op.direct)
    for change in ({"direct": True}, {"outputs": (f32(1),)}, {"error": ErrorInfo("E", "e")}):
        assert isinstance(linear, Op)
        trace = programs.attention().trace()
        ops = tuple(dataclasses.replace(op, **change) if op == linear else op for op in trace.ops)
        changed = render(dataclasses.replace(trace, ops=ops), "tree")
        assert changed.count("─ linear") == 1, change
    assert render(programs.attention().trace(), "tree").count("─ linear") == 0


def test_module_calls_without_a_place_are_shown() -> None:
    trace = PROGRAMS["failure"]().trace()
    modules = tuple(
        dataclasses.replace(module, file=None, line=None, function=None, stack=())
        for module in trace.modules
    )
    for view in VIEWS:
        assert "Flatten" in render(dataclasses.replace(trace, modules=modules, frames=()), view)
