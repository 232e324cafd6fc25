"""Rows that no recorder sends: refused where they enter, and everything else is shown as before.

Every field of every kind of row is replaced by everything that it cannot be, one at a time, as a
program's agent might send it that has gone wrong.
"""

from __future__ import annotations

import copy
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shapetrace.events.model import Container, Other, Tensor
from shapetrace.events.stop import Locals, LocalVariable, Stop, StoppedFunction
from shapetrace.server.documents import Documents
from shapetrace.server.features.captured_tree import CapturedTree
from shapetrace.server.features.code_lens import code_lenses
from shapetrace.server.features.inlay_hints import inlay_hints
from shapetrace.server.features.watched_tree import WatchedTree
from shapetrace.server.listener import ProcessKey
from shapetrace.server.messages.sessions import Status
from shapetrace.server.messages.settings import HintOptions
from shapetrace.server.pin_and_focus import PinAndFocus
from shapetrace.server.processes import Process
from shapetrace.server.scope import Scope
from shapetrace.server.sessions import Sessions
from shapetrace.server.store import TraceStore
from shapetrace.server.view import DocumentView
from shapetrace.transport.messages import Hello, NumberedStop, ProcessInfo, write
from tests.python.unit.server import test_watched
from tests.python.unit.server.annotated import Shown, with_hints
from tests.python.unit.server.test_trace_tree import Drawn
from tests.python.unit.transport import test_captures
from tests.support.recorder import PRELUDE
from tests.support.rows import recorded, rows_of

PROGRAM = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)

    def forward(self, x, scale=2):
        y = self.fc(x)
        parts = torch.split(y, 2, dim=1)
        for part in parts:
            y = y + part.sum()
        return {"y": y * scale, "parts": parts}


net = Net()
for size in (2, 5):
    out = net(torch.ones(size, 3))
try:
    torch.ones(2, 3) @ torch.ones(2, 3)
except RuntimeError:
    pass
"""


def stop_in(path: Path, messages: list[dict[str, Any]]) -> dict[str, Any]:
    """What the agent sends of a stop in the first call of the program's net."""
    call = messages[0]["modules"][0][0]
    first, second = (row[0] for row in messages[0]["ops"][:2])
    variables = (
        LocalVariable("x", Tensor((2, 3), "float32"), ((7,),), is_fresh=True),
        LocalVariable("y", Container("tuple", (Other("1"),)), ((8, 8, 8, 9), (11, 12, 11, 13))),
    )
    known = Locals(variables, frozenset({"parts", "part"}))
    own = StoppedFunction(str(path), "Net.forward", 9, frozenset({first, second}), known)
    outer = StoppedFunction(str(path), "<module>", 17, frozenset({first}))
    return write(NumberedStop(3, Stop(call, own, (outer,))))


def nested(depth: int) -> list[Any]:
    value: list[Any] = [2, "at the bottom"]
    for _ in range(depth):
        value = [1, "list", [value], None, None]
    return value


WRONG: dict[str, Any] = {
    "null": None,
    "true": True,
    "a huge number": 10**4000,
    "a number beyond 64 bits": 2**63,
    "below zero": -1,
    "a fraction": 0.5,
    "a huge fraction": 1e308,
    "an unknown number": 987654321,
    "the number of something else": 1,
    "a text": "text",
    "half a character": "\\ud800",
    "no path": "a\\0b",
    "an empty list": [],
    "a list": [1, "a", None],
    "a list of lists": [[[]]],
    "deep values": nested(40),
    "very deep values": nested(150),
    "an object": {"a": 1},
}
"""What each field is replaced by."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bad_rows") / "program.py"
    path.write_text(PRELUDE + PROGRAM, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def messages(path: Path) -> list[dict[str, Any]]:
    """What a recorder sends of the program, as it arrives."""
    sent: list[dict[str, Any]] = json.loads(json.dumps(rows_of(recorded(path))))
    return sent


class Editor:
    """A server's side of one process, and what the editor is answered."""

    def __init__(self, path: Path, hear: Callable[[Status], None] = lambda _: None) -> None:
        """``hear`` is told of each status."""
        self.store = TraceStore()
        self.sessions = Sessions(self.store, hear, lambda _: None, lambda _: None)
        self.key = ProcessKey("session", 7)
        self.path = path
        self.begin()

    def begin(self) -> None:
        """The process connects, and tells everything from the beginning."""
        self.sessions.hello(self.key, Hello("session", ProcessInfo(7, 1, "3.11", "python", ())))

    def tell(self, messages: list[dict[str, Any]]) -> None:
        for message in messages:
            self.sessions.message(self.key, message)

    @property
    def process(self) -> Process:
        return self.store.processes("session")[self.key]

    def answers(self) -> dict[str, Any]:
        """Everything that is made of rows: hints, hovers, lenses, the tree, an export."""
        documents = Documents()
        document = documents.open(self.path.as_uri(), self.path.read_text(), 1)
        assert document is not None
        tree = Drawn(self.store)
        told: dict[str, Any] = {"tree": tree.text(), "found": tree.text("a")}
        told["stop"] = self.shown_at_the_stop()
        told["traces"] = [len(trace.ops) for trace in self.store.traces(None)]
        if self.store.records(document.key) is not None:
            shown = Shown(self.path, self.store, documents, document)
            if shown.store.records(document.key).text is None:  # type: ignore[union-attr]
                return told
            told["hints"] = shown.text()
            told["lenses"] = [str(lens) for lens in code_lenses(shown.view(), self.store)]
            told["hovers"] = [
                (story := shown.hover(place)) and story.markdown
                for place in ("y = ^self.fc(x)", "y = y + part.^sum()", "out = ^net(", "^net(torch")
            ]
        return told

    def shown_at_the_stop(self) -> str | None:
        """The hints where the process has stopped last."""
        told = self.process.stop
        if told is None:
            return None
        document = Documents().open(self.path.as_uri(), self.path.read_text(), 1)
        assert document is not None
        scopes = PinAndFocus(self.store)
        scopes.set_focus(Scope(self.process.number, told.stop.call, told.stop))
        records = scopes.records(document.key)
        if records is None or records.base.text is None:
            return None
        view = DocumentView(document, records, records.base.text)
        hints = inlay_hints(view, 0, 1_000_000, HintOptions(), scope_path=scopes.scope_path)
        return with_hints(document.lines, hints)

    def told_of_values(self) -> list[str]:
        """What the tree says of captured values and watched variables."""
        told: list[str] = []
        for tree in (CapturedTree(self.store), WatchedTree(self.store)):
            root = tree.root("")
            pending = [] if root is None else [root]
            while pending:
                node = pending.pop()
                told += [f"{node.label}: {node.description}", tree.story(node.id)]
                if node.has_children:
                    pending += tree.page(node.id, "", 0, 1000)[0]
        return told


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something can be replaced: each row, each field, and what is in these."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield (*path, key)
        # Of a list of rows the first and the last, which stand for the others.
        if isinstance(item, dict | list):
            inner = item
            if isinstance(item, list) and len(item) > 4 and isinstance(item[0], list):
                yield from ((*path, key, *place) for place in places_of_ends(item))
                continue
            yield from places(inner, (*path, key))


def places_of_ends(rows: list[Any]) -> Iterator[tuple[Any, ...]]:
    for index in (0, len(rows) // 2, len(rows) - 1):
        yield (index,)
        if isinstance(rows[index], list | dict):
            yield from places(rows[index], (index,))


def replaced(message: dict[str, Any], place: tuple[Any, ...], wrong: Any) -> dict[str, Any]:
    changed = copy.deepcopy(message)
    holder: Any = changed
    for step in place[:-1]:
        holder = holder[step]
    holder[place[-1]] = wrong
    return changed


def kinds(messages: list[dict[str, Any]]) -> set[str]:
    return {kind for message in messages for kind in message} - {"type"}


def test_the_program_has_every_kind_of_row(messages: list[dict[str, Any]]) -> None:
    assert kinds(messages) >= {
        *("run", "sources", "frames", "stacks", "values", "modules", "ops", "variables"),
    }


@pytest.mark.slow
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_field_spoils_no_answer(
    wrong: str, path: Path, messages: list[dict[str, Any]], caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever stands in one field, all is answered, and the rows sent anew are shown as ever."""
    caplog.set_level(logging.CRITICAL)
    calm = Editor(path)
    calm.tell(messages)
    expected = calm.answers()
    assert expected["hints"].count("«") > 5
    identity = messages[0]["ops"][0][0]
    counts = {"type": "rows", "counts": [[identity, 5]], "coverage": [["a", "b", 1]]}
    for message in [*messages, counts]:
        for kind in message.keys() - {"type"}:
            editor = Editor(path)
            editor.tell(messages)
            for place in places({kind: message[kind]}):
                editor.tell([replaced(message, place, WRONG[wrong])])
            editor.answers()
            editor.begin()
            editor.tell(messages)
            assert editor.answers() == expected, kind


def test_good_rows_beside_a_wrong_one_are_shown(path: Path, messages: list[dict[str, Any]]) -> None:
    """The session goes on at once, with every row that does not need the one that was refused."""
    calm = Editor(path)
    calm.tell(messages)
    spoilt = copy.deepcopy(messages)
    last = spoilt[0]["ops"][-1]
    bad = [
        ("frames", ["7", *spoilt[0]["frames"][0][1:]]),
        ("frames", [10**6, "a\0b", *spoilt[0]["frames"][0][2:]]),
        ("stacks", [10**6, 0, 10**6]),
        ("values", [10**6, nested(150)]),
        ("values", [10**6, [0, [2, None], *spoilt[0]["values"][0][1][2:]]]),
        ("modules", [10**6, 10**7, *spoilt[0]["modules"][0][2:]]),
        ("ops", [10**6, *last[1:-1]]),
        ("ops", [10**6, *last[1:4], 10**7, *last[5:]]),
        ("ops", [spoilt[0]["modules"][0][0], *last[1:]]),
        ("ops", [10**6, *last[1:8], [10**6], *last[9:]]),
        ("ops", [[], *last[1:]]),
        ("variables", [10**6, None, *spoilt[0]["variables"][0][2:]]),
        ("coverage", ["a", "b", "c"]),
        ("counts", [10**6, 3]),
        ("sources", ["\ud800", None, None]),
    ]
    for kind, row in bad:
        spoilt[0].setdefault(kind, []).insert(0, row)
        spoilt[0][kind].append(row)
    spoilt[0]["fingerprints"] = 3
    editor = Editor(path)
    editor.tell(spoilt)
    assert editor.answers() == calm.answers()


def test_what_was_refused_is_said_and_names_the_row(
    path: Path, messages: list[dict[str, Any]], caplog: pytest.LogCaptureFixture
) -> None:
    editor = Editor(path)
    editor.tell(messages)
    op = messages[0]["ops"][0]
    rows = [
        [op[0], None, *op[2:]],
        [op[0], *op[1:12], 2**70, *op[13:]],
        [op[0], *op[1:5], 424242, *op[6:]],
        [op[0], *op[1:8], [[]], *op[9:]],
        op[:-1],
        "no row",
    ]
    editor.tell([{"type": "rows", "ops": rows}])
    number = op[0]
    for said in (
        "process 7 of session session: refused: a row of ops",
        f"a row of ops ({number}): name should be text, not null",
        f"a row of ops ({number}): it was called an impossible number of times",
        f"a row of ops ({number}): nothing was sent with number 424242",
        f"a row of ops ({number}): unhashable type: 'list'",
        f"a row of ops ({number}): it has 16 columns, not 17",
        "a row of ops: it should be a list, not text",
    ):
        assert said in caplog.text
    caplog.clear()
    editor.tell([{"type": "rows", "ops": ["no row"] * 5000}])
    assert 10 < len(caplog.records) < 30


def test_module_calls_in_a_circle_are_refused(path: Path, messages: list[dict[str, Any]]) -> None:
    editor = Editor(path)
    editor.tell(messages)
    before = editor.answers()
    first, second = messages[0]["modules"][:2]
    assert second[1] == first[0]
    kernels = [[*op[:13], "aten", parent, *op[15:]] for op, parent in circle(messages[0]["ops"])]
    editor.tell(
        [
            {"type": "rows", "modules": [[first[0], second[0], *first[2:]]]},
            {"type": "rows", "modules": [[first[0], first[0], *first[2:]]]},
            {"type": "rows", "ops": kernels},
        ]
    )
    editor.answers()
    assert editor.process.modules[first[0]].parent is None
    assert before["hints"] == editor.answers()["hints"]


def circle(ops: list[Any]) -> Iterator[tuple[Any, int]]:
    """Two kernels that each say that they ran for the other."""
    numbers = (10**6, 10**6 + 1)
    for index in (0, 1):
        yield [numbers[index], *ops[0][1:]], numbers[1 - index]


def test_a_sender_that_begins_anew_means_something_else_by_its_numbers(path: Path) -> None:
    """An agent that was disturbed numbers its values from the beginning on the same connection."""
    from shapetrace.events.rows import RowReader

    def message(size: int) -> dict[str, Any]:
        tensor = [0, [size], "float32", "cpu", False, None, "Tensor", "strided", None]
        variable = [1, "x", "a.py", 1, 0, 1, 1, "f", None, 1, "assignment"]
        return {"values": [[1, tensor]], "variables": [variable]}

    reader = RowReader()
    for size in (2, 3):
        tensor = reader.read(message(size)).variables[1].tensor
        assert tensor.shape == (size,)  # type: ignore[union-attr]


@pytest.mark.slow
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_field_of_what_is_captured_or_watched(
    wrong: str, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    sent: list[dict[str, Any]] = json.loads(
        json.dumps([write(test_captures.NEWS), write(test_watched.NEWS)])
    )
    calm = Editor(path)
    calm.tell(sent)
    for message in sent:
        editor = Editor(path)
        editor.tell(sent)
        for place in places({kind: message[kind] for kind in message if kind != "type"}):
            editor.tell([replaced(message, place, WRONG[wrong])])
            editor.told_of_values()
        editor.begin()
        editor.tell(sent)
        assert editor.told_of_values() == calm.told_of_values()


@pytest.mark.slow
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_field_of_a_stop(
    wrong: str, path: Path, messages: list[dict[str, Any]], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    stop = stop_in(path, messages)
    calm = Editor(path)
    calm.tell([*messages, stop])
    assert "~ " in str(calm.answers()["stop"])
    editor = Editor(path)
    editor.tell(messages)
    for place in places({kind: stop[kind] for kind in stop if kind != "type"}):
        editor.tell([replaced(stop, place, WRONG[wrong])])
        editor.shown_at_the_stop()
    editor.tell([stop])
    assert editor.answers() == calm.answers()
