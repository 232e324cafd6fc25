"""What the editor is told of two traces."""

from __future__ import annotations

from pathlib import Path

import pytest

from shapetrace._errors import TraceFileError
from shapetrace.events import codec
from shapetrace.server.comparisons import compare_for_editor
from shapetrace.server.messages.comparison import Compare, ComparedPlace
from tests.python.unit.comparing.worlds import Call, World, random_world


@pytest.fixture
def files(tmp_path: Path) -> tuple[World, World, Compare]:
    a = random_world(4, with_values=True)
    b = a.copy()
    b.folder = "/home/ben/project"
    b.ops()[9].shape = (3, 3)
    b.ops()[20].value *= 2
    b.modules()[3].inside.append(Call("gone"))
    codec.save(a.trace(), tmp_path / "a.json")
    codec.save(b.trace(), tmp_path / "b.json")
    return a, b, Compare(str(tmp_path / "a.json"), str(tmp_path / "b.json"))


def test_the_texts_differ_just_where_the_runs_do(files: tuple[World, World, Compare]) -> None:
    _, _, question = files
    compared = compare_for_editor(question, None)
    left, right = compared.left.splitlines(), compared.right.splitlines()
    marked_left = {call.left for call in compared.differences if call.a is not None}
    marked_right = {call.right for call in compared.differences if call.b is not None}
    rest_left = [line for at, line in enumerate(left) if at not in marked_left]
    rest_right = [line for at, line in enumerate(right) if at not in marked_right]
    assert rest_left == rest_right
    assert len(compared.differences) == 3
    for call in compared.differences:
        if call.a is not None and call.b is not None:
            assert left[call.left] != right[call.right]


def test_each_difference_is_told_with_its_places(files: tuple[World, World, Compare]) -> None:
    a, b, question = files
    compared = compare_for_editor(question, None)
    assert compared.first == 0
    first = compared.differences[0]
    assert first.kind == "shape"
    assert first.a == ComparedPlace("/home/ada/project/model.py", a.ops()[9].line)
    assert first.b == ComparedPlace("/home/ben/project/model.py", b.ops()[9].line)
    lone = next(call for call in compared.differences if call.detail == "only in B")
    assert lone.a is None
    assert "gone()" in compared.right.splitlines()[lone.right]
    assert compared.summary.startswith("First difference, after 9 ops that are alike: shape.")


def test_runs_that_are_alike(files: tuple[World, World, Compare]) -> None:
    _, _, question = files
    compared = compare_for_editor(Compare(question.a, question.a), None)
    assert compared.left == compared.right
    assert (compared.differences, compared.first) == ((), None)
    assert compared.summary.startswith("The runs are alike.")


def test_long_stretches_that_are_alike_are_shortened(tmp_path: Path) -> None:
    a = World([Call(f"op{number}") for number in range(1000)])
    b = a.copy()
    b.calls.append(Call("last"))
    codec.save(a.trace(), tmp_path / "a.json")
    codec.save(b.trace(), tmp_path / "b.json")
    compared = compare_for_editor(Compare(str(tmp_path / "a.json"), str(tmp_path / "b.json")), None)
    lines = compared.right.splitlines()
    assert len(lines) == 42
    assert lines[20] == "… 960 calls that are alike"
    assert lines[compared.differences[0].right].startswith("last()")


def test_what_was_recorded_stands_for_a_file(files: tuple[World, World, Compare]) -> None:
    a, _, question = files
    same = compare_for_editor(Compare(None, question.a), a.trace())
    assert same.first is None
    with pytest.raises(TraceFileError, match="nothing is recorded in this window yet"):
        compare_for_editor(Compare(None, question.a), None)
    with pytest.raises(TraceFileError, match="there is no file"):
        compare_for_editor(Compare(question.a, "/none.json"), None)
