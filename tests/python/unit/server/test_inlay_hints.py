from __future__ import annotations

from pathlib import Path

import pytest

from shapetrace.server.store import TraceStore
from tests.python.unit.server.annotated import plain, show, with_hints
from tests.python.unit.server.corpus_of_hints import AFTER_NAMES, ERRORS, HINTS
from tests.support.recorder import PRELUDE
from tests.support.rows import recorded, updates_of

pytestmark = pytest.mark.slow

MOVING = """
    def f(x): «x f32[2,3]»
        y = x * 2 «f32[2,3]»
        z = torch.cat(
            [y, y],
        ) «f32[4,3]»
        return y + 1 «f32[2,3]»
    f(torch.ones(2, 3))
"""


@pytest.mark.parametrize("text", HINTS.values(), ids=HINTS.keys())
def test_each_line_shows_what_it_produced(text: str, tmp_path: Path) -> None:
    assert show(text, tmp_path / "program.py").text() == plain(text)


@pytest.mark.parametrize("text", AFTER_NAMES.values(), ids=AFTER_NAMES.keys())
def test_hints_can_stand_behind_the_names(text: str, tmp_path: Path) -> None:
    assert show(text, tmp_path / "program.py").text(position="afterName") == plain(text)


@pytest.mark.parametrize("text", ERRORS.values(), ids=ERRORS.keys())
def test_a_line_that_failed_says_so(text: str, tmp_path: Path) -> None:
    shown = show(text, tmp_path / "program.py", may_fail=True)
    assert shown.text() == plain(text)


@pytest.mark.parametrize("text", [*HINTS.values(), *ERRORS.values()])
@pytest.mark.parametrize("length", [8, 13, 20, 43, 200])
def test_no_line_has_more_characters_than_are_asked_for(
    text: str, length: int, tmp_path: Path
) -> None:
    shown = show(text, tmp_path / "program.py", may_fail=True)
    for position in ("lineEnd", "afterName"):
        used: dict[int, int] = {}
        for hint in shown.hints(position=position, maximum_length=length):
            used[hint.line] = used.get(hint.line, 0) + len(hint.text)
            assert hint.text
        assert max(used.values(), default=0) <= length


def test_only_what_is_asked_for_is_answered(tmp_path: Path) -> None:
    shown = show(MOVING, tmp_path / "program.py")
    everything = shown.hints()
    for first in range(9):
        for last in range(first, 9):
            expected = [hint for hint in everything if first <= hint.line <= last]
            assert shown.hints(first, last) == expected, (first, last)
    assert shown.hints(7, 2) == []
    assert shown.hints(5000, 6000) == []


def test_hints_can_be_off_and_parameters_left_out(tmp_path: Path) -> None:
    shown = show(MOVING, tmp_path / "program.py")
    assert shown.hints(position="off") == []
    assert plain(MOVING).replace(" «x f32[2,3]»", "") == shown.text(parameters=False)


def test_hints_move_with_their_lines_and_changed_lines_lose_theirs(tmp_path: Path) -> None:
    shown = show(MOVING, tmp_path / "program.py")
    document = shown.document
    document.replace((2, 4), (2, 4), "new = 1\n    ")  # above the assignment of y
    document.replace((5, 13), (5, 13), " # a word")  # within the statement of several lines
    expected = """
        def f(x): «x f32[2,3]»
            new = 1
            y = x * 2
            z = torch.cat(
                [y, y # a word],
            )
            return y + 1 «f32[2,3]»
        f(torch.ones(2, 3))
    """
    expected = expected.replace("y = x * 2", "y = x * 2 «f32[2,3]»")
    assert shown.text() == plain(expected)
    document.replace((5, 13), (5, 22), "")
    document.replace((2, 4), (3, 4), "")
    assert shown.text() == plain(MOVING)


def test_a_document_that_differs_from_what_ran_shows_what_is_still_there(tmp_path: Path) -> None:
    shown = show(MOVING, tmp_path / "program.py")
    text = PRELUDE + "# new\n" + plain(MOVING).replace("y + 1", "y + 2")
    document = shown.documents.open(shown.path.as_uri(), _without(text), 1)
    assert document is not None
    shown.document = document
    assert shown.text() == "# new\n" + plain(MOVING).replace("y + 1 «f32[2,3]»", "y + 2")


def _without(text: str) -> str:
    return "".join(part.partition("»")[2] if "»" in part else part for part in text.split(" «"))


def test_the_newest_session_wins_and_its_processes_are_merged(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    text = "import sys, torch\nx = torch.ones(len(sys.argv), 3) * 2\n"
    path.write_text(text)
    store = TraceStore()
    shown = show("x = torch.ones(7) «»", path)
    path.write_text(text)

    def run(session: str, process: str, arguments: list[str]) -> None:
        store.open_process(session, process)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.argv", arguments)
            for update in updates_of(recorded(path)):
                store.apply(process, update)

    def hints() -> str:
        document = shown.documents.open(path.as_uri(), text, 1)
        assert document is not None
        shown.document, shown.store = document, store
        return with_hints(document.lines, shown.hints()).split("\n")[1].partition("«")[2]

    run("first", "1", ["a"])
    assert hints() == "f32[1,3]»"
    run("second", "2", ["a", "b"])
    assert hints() == "f32[2,3]»"
    run("second", "3", ["a", "b", "c"])
    assert hints() == "f32[2|3,3]»"
    run("first", "4", ["a"] * 9)
    assert hints() == "f32[2|3,3]»"
    run("second", "2", ["a"] * 4)
    assert hints() == "f32[3|4,3]»"
