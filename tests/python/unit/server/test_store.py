"""Traces of sessions and processes, put together from updates."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shapetrace.events.model import (
    Coverage,
    ErrorInfo,
    Frame,
    ModuleCall,
    Op,
    Other,
    Run,
    Tensor,
    Trace,
    Variable,
)
from shapetrace.events.update import Source, Update
from shapetrace.recorder.snapshot import take_snapshot
from shapetrace.server.file_records import FileRecords
from shapetrace.server.ranges import SourceRange
from shapetrace.server.store import TraceStore
from shapetrace.server.uris import file_key
from shapetrace.views.shapes import value_text
from tests.support.rows import recorded, updates_of

FILE = "/model.py"
KEY = file_key(FILE)
HERE = SourceRange(3, 4, 3, 9)


def tensor(*shape: int) -> Tensor:
    return Tensor(shape, "float32")


def op(identity: int, output: Tensor | None = None, **changes: Any) -> Op:
    """An op at ``HERE``, unless changed."""
    made = Op(
        id=identity,
        name="torch.relu",
        label="relu()",
        form="relu({0})",
        module=None,
        function="f",
        file=FILE,
        line=HERE.line,
        column=HERE.column,
        end_line=HERE.end_line,
        end_column=HERE.end_column,
        direct=True,
        stack=(),
        inputs=(),
        outputs=() if output is None else (output,),
        result=None,
        count=1,
    )
    return replace(made, **changes)


def variable(value: Tensor, line: int = 3) -> Variable:
    """The name ``x`` at the beginning of a line of ``f``."""
    return Variable("x", FILE, line, 0, line, 1, "f", None, value)


def module(identity: int, output: Tensor | None = None, **changes: Any) -> ModuleCall:
    """A module call at ``HERE``, unless changed."""
    made = ModuleCall(
        id=identity,
        parent=None,
        path="layer",
        class_name="Layer",
        detail="",
        call=1,
        count=1,
        file=FILE,
        line=HERE.line,
        column=HERE.column,
        end_line=HERE.end_line,
        end_column=HERE.end_column,
        function="f",
        stack=(),
        inputs=(),
        input_names=(),
        outputs=() if output is None else (output,),
        result=None,
    )
    return replace(made, **changes)


@pytest.fixture
def store() -> TraceStore:
    """A store with one process."""
    made = TraceStore()
    made.open_process("session", "process")
    return made


def records_of(store: TraceStore) -> FileRecords:
    records = store.records(KEY)
    assert records is not None
    return records


def values(store: TraceStore) -> list[str]:
    """What the expression ``HERE`` is worth."""
    expression = records_of(store).expression(HERE)
    return [] if expression is None else [value_text(value) for value in expression.values]


def test_values_add_up_and_each_is_there_once(store: TraceStore) -> None:
    store.apply("process", Update(ops=(op(1, tensor(2)), op(2, tensor(3)))))
    assert values(store) == ["f32[2]", "f32[3]"]
    store.apply("process", Update(ops=(op(3, tensor(2)), op(4, tensor(4)))))
    assert values(store) == ["f32[2]", "f32[3]", "f32[4]"]


def test_a_known_call_is_replaced(store: TraceStore) -> None:
    store.apply("process", Update(modules=(module(1), module(2, tensor(5)))))
    assert values(store) == ["f32[5]"]
    store.apply("process", Update(modules=(module(1, tensor(2)),)))
    assert values(store) == ["f32[2]", "f32[5]"]
    store.apply("process", Update(modules=(module(2, tensor(6)),)))
    assert values(store) == ["f32[2]", "f32[6]"]


def test_a_call_can_move(store: TraceStore) -> None:
    store.apply("process", Update(ops=(op(1, tensor(2)),)))
    store.apply("process", Update(ops=(op(1, tensor(2), line=7, end_line=7),)))
    assert values(store) == []
    assert records_of(store).expression(SourceRange(7, 4, 7, 9)) is not None
    store.apply("process", Update(ops=(op(1, tensor(2), file="/other.py"),)))
    assert list(records_of(store).expressions(1, 100)) == [
        expression for expression in records_of(store).expressions(1, 100) if not expression.calls
    ]


def test_only_what_the_program_called_itself_says_what_an_expression_is_worth(
    store: TraceStore,
) -> None:
    store.apply(
        "process",
        Update(
            ops=(
                op(1, tensor(2), direct=False),
                op(2, tensor(3), level="aten", parent=1),
                op(3, error=ErrorInfo("RuntimeError", "no")),
                op(4),
                op(5, tensor(4), column=None),
            )
        ),
    )
    assert values(store) == []
    expression = records_of(store).expression(HERE)
    assert expression is not None
    assert [error.message for error in expression.errors] == ["no"]
    assert sorted(number for _, number in expression.calls) == [1, 3, 4]


def test_errors_inside_libraries_may_have_been_handled_there(store: TraceStore) -> None:
    failed = op(1, error=ErrorInfo("RuntimeError", "tried"), direct=False)
    store.apply("process", Update(ops=(failed,)))
    expression = records_of(store).expression(HERE)
    assert expression is not None
    assert list(expression.errors) == []


def test_variables_are_replaced_by_number(store: TraceStore) -> None:
    where = SourceRange(3, 0, 3, 1)
    store.apply("process", Update(variables={1: variable(tensor(2)), 2: variable(tensor(3))}))
    assert list(records_of(store).stored(where)) == [tensor(2), tensor(3)]
    store.apply("process", Update(variables={1: variable(tensor(4), line=9)}))
    assert list(records_of(store).stored(where)) == [tensor(3)]


def test_what_changed_is_told(store: TraceStore) -> None:
    told: list[tuple[set[str], set[str]]] = []
    store.add_listener(lambda changed, counted: told.append((set(changed), set(counted))))
    store.apply("process", Update(ops=(op(1, tensor(2)), op(2, file="/other.py"))))
    store.apply("process", Update(counts={1: 7, 99: 3}))
    store.apply("process", Update(coverage=(Coverage("settled", "x", 1),)))
    store.apply("process", Update(ops=(op(3, level="aten"),)))
    source = Source(FILE, "digest", "text")
    store.apply("process", Update(sources=(source,)))
    store.apply("process", Update(sources=(source,)))
    store.clear()
    other = file_key("/other.py")
    assert told == [({KEY, other}, set()), (set(), {KEY}), ({KEY}, set()), ({KEY, other}, set())]


def test_counts_belong_to_the_calls(store: TraceStore) -> None:
    store.apply("process", Update(ops=(op(1, tensor(2)),), modules=(module(2, tensor(2)),)))
    store.apply("process", Update(counts={1: 5, 2: 6}))
    (trace,) = store.traces("session")
    assert (trace.ops[0].count, trace.modules[0].count) == (5, 6)
    store.apply("process", Update(ops=(op(1, tensor(2), count=9),)))
    (trace,) = store.traces("session")
    assert trace.ops[0].count == 9


def test_a_process_that_begins_anew_forgets_what_it_was(store: TraceStore) -> None:
    store.apply("process", Update(ops=(op(1, tensor(2)),)))
    store.open_process("session", "process")
    assert values(store) == []
    store.apply("process", Update(ops=(op(1, tensor(3)),)))
    assert values(store) == ["f32[3]"]
    assert len(list(store.traces("session"))) == 1


def test_clearing_forgets_but_goes_on(store: TraceStore) -> None:
    source = Source(FILE, "digest", "text")
    frame = Frame(1, FILE, 3, "f")
    store.apply("process", Update(sources=(source,), frames=(frame,), ops=(op(1, tensor(2)),)))
    store.clear()
    assert store.records(KEY) is None
    store.apply("process", Update(counts={1: 1}, ops=(op(2, tensor(5)),)))
    assert values(store) == ["f32[5]"]
    assert records_of(store).text == "text"
    (trace,) = store.traces(None)
    assert trace.frames == (frame,)
    assert [each.id for each in trace.ops] == [2]


def test_what_runs_again_after_it_was_cleared_comes_back(store: TraceStore) -> None:
    frame = Frame(1, FILE, 3, "f")
    update = Update(
        frames=(frame,),
        modules=(module(1, tensor(2)), module(2, tensor(9))),
        ops=(op(3, tensor(3), module=1, stack=(1,)), op(4, tensor(4), line=7, end_line=7)),
        variables={1: variable(tensor(3)), 2: variable(tensor(4), line=7)},
    )
    store.apply("process", update)
    store.clear()
    (trace,) = store.traces("session")
    assert (trace.ops, trace.modules, trace.variables) == ((), (), ())
    store.apply("process", Update(counts={3: 5, 4: 1}))
    assert values(store) == ["f32[3]"]
    (trace,) = store.traces("session")
    assert [(each.id, each.count) for each in trace.modules] == [(1, 1)]
    assert [(each.id, each.count) for each in trace.ops] == [(3, 5)]
    assert trace.variables == (variable(tensor(3)),)
    assert [each for _, each in records_of(store).variables(1, 9)] == [variable(tensor(3))]


def test_a_file_that_has_changed_between_processes(store: TraceStore) -> None:
    store.apply("process", Update(sources=(Source(FILE, "1", "a"),), ops=(op(1, tensor(2)),)))
    store.open_process("session", "later")
    store.apply("later", Update(sources=(Source(FILE, "2", "b"),), ops=(op(1, tensor(3)),)))
    assert (values(store), records_of(store).text) == (["f32[3]"], "b")
    store.apply("process", Update(ops=(op(2, tensor(4)),), variables={1: variable(tensor(4))}))
    assert values(store) == ["f32[3]"]
    assert list(records_of(store).variables(1, 9)) == []


def test_a_session_that_is_restarted_begins_anew(store: TraceStore) -> None:
    store.apply("process", Update(ops=(op(1, tensor(2)),)))
    store.open_session("session")
    assert values(store) == ["f32[2]"]
    store.close_session("session")
    assert values(store) == ["f32[2]"]
    store.open_session("session")
    assert store.records(KEY) is None
    store.apply("process", Update(ops=(op(2, tensor(3)),)))
    assert store.records(KEY) is None


def test_what_is_forgotten_is_gone_without_the_garbage_collector() -> None:
    store = TraceStore()
    gone = []
    for number in range(3):
        store.open_session(str(number))
        store.open_process(str(number), number)
        store.apply(number, Update(ops=(op(1, tensor(2)),)))
        gone.append(weakref.ref(records_of(store)))
        store.close_process(number)
    gc.disable()
    try:
        store.open_session("last")
        assert [reference() is None for reference in gone] == [True, True, False]
    finally:
        gc.enable()


def test_a_forward_is_known_behind_what_decorates_it(store: TraceStore) -> None:
    frames = (Frame(1, FILE, 90, "wraps.<locals>.wrapper"), Frame(2, FILE, 3, "Net.forward"))
    store.apply("process", Update(frames=frames, modules=(module(1, tensor(2)),)))
    store.apply("process", Update(ops=(op(2, tensor(2), module=1, stack=(1,)),)))
    assert list(records_of(store).module_calls("wraps.<locals>.wrapper")) == [(1, 1)]
    store.apply("process", Update(ops=(op(3, tensor(2), module=1, stack=(1, 2)),)))
    assert list(records_of(store).module_calls("Net.forward")) == [(1, 1)]
    assert list(records_of(store).module_calls("wraps.<locals>.wrapper")) == []


def test_nothing_comes_back_of_a_process_that_is_over(store: TraceStore) -> None:
    store.apply("process", Update(ops=(op(1, tensor(2)),)))
    store.close_process("process")
    store.clear()
    store.apply("process", Update(counts={1: 2}))
    assert store.records(KEY) is None


def test_sessions_read_back_are_older_than_all_others() -> None:
    store = TraceStore()
    for session, is_former in (("new", False), ("old", True), ("older", True)):
        store.open_session(session, is_former=is_former)
        store.open_process(session, session)
    for session, size in (("old", 2), ("older", 1)):
        store.apply(session, Update(ops=(op(1, tensor(size)),)))
    assert values(store) == ["f32[1]"]
    store.apply("new", Update(ops=(op(1, tensor(3)),)))
    assert values(store) == ["f32[3]"]
    store.open_session("old")
    assert values(store) == ["f32[3]"]


def test_sessions_that_nothing_is_shown_of_are_forgotten() -> None:
    store = TraceStore()

    def run(session: str, file: str) -> None:
        store.open_session(session)
        store.open_process(session, session)
        store.apply(session, Update(ops=(op(1, tensor(2), file=file),)))
        store.close_process(session)

    run("a", "/a.py")
    run("b", "/b.py")
    run("a again", "/a.py")
    assert list(store.traces("a"))  # it is looked at when the next one begins
    store.open_session("next")
    assert [bool(list(store.traces(each))) for each in ("a", "b", "a again")] == [False, True, True]
    for number in range(9):
        run(f"{number}", f"/{number}.py")
    store.open_session("last")
    kept = [each for each in ("b", "a again", *map(str, range(9))) if list(store.traces(each))]
    assert kept == ["2", "3", "4", "5", "6", "7", "8"]
    store.open_process("running", "running")
    store.apply("running", Update(ops=(op(1, tensor(2), file="/8.py"),)))
    run("8 again", "/8.py")
    store.open_session("the end")
    assert list(store.traces("running"))
    assert not list(store.traces("8"))


def test_what_cannot_be_told_from_a_value_is_not() -> None:
    records = FileRecords(FILE, lambda key: None)
    records.add_call(1, op(1, outputs=(Other("None"),)))
    expression = records.expression(HERE)
    assert expression is not None
    assert list(expression.values) == [Other("None")]


def test_all_updates_together_are_the_trace(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(
        "import torch\n"
        "from torch import nn\n"
        "net = nn.Sequential(nn.Linear(3, 4), nn.ReLU())\n"
        "for size in range(1, 5):\n"
        "    for _ in range(3):\n"
        "        out = net(torch.ones(size, 3))\n"
    )
    recorder = recorded(path)
    store = TraceStore()
    store.open_process("session", "process")
    for update in updates_of(recorder):
        store.apply("process", update)
    (trace,) = store.traces("session")
    assert comparable(trace) == comparable(take_snapshot(recorder))


def comparable(trace: Trace) -> dict[str, object]:
    """A trace without the numbers of its frames, which are the writer's own."""
    places = {
        frame.id: (frame.file, frame.line, frame.column, frame.end_line, frame.end_column)
        for frame in trace.frames
    }

    def on_places(call: Op | ModuleCall) -> object:
        stack = tuple(places[number] for number in call.stack)
        return (replace(call, stack=()), stack)

    return {
        "run": replace(trace.run, extra={}),
        "modules": list(map(on_places, trace.modules)),
        "ops": list(map(on_places, trace.ops)),
        "variables": {repr(variable) for variable in trace.variables},
        "coverage": trace.coverage,
    }


def test_a_session_without_a_run_has_a_trace_all_the_same(store: TraceStore) -> None:
    (trace,) = store.traces("session")
    assert isinstance(trace.run, Run)
    assert list(store.traces("another")) == []
    assert list(store.traces(None)) == []
