"""The real server at the end of a real client, with what a real recorder wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pygls.exceptions import JsonRpcException

import shapetrace
from tests.support.language_client import Client, FakeAgent, running
from tests.support.rows import recorded, rows_of

pytestmark = pytest.mark.e2e

PROGRAM = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)

    def forward(self, x):
        "😀"; y = self.fc(x)  # größe
        return y.relu()


out = Net()(torch.ones(2, 3))
"""

HINTS = [
    (9, 25, "x f32[2,3]"),
    (10, 37, "f32[2,4]"),
    (11, 23, "f32[2,4]"),
    (14, 29, "f32[2,4]"),
]


def traced(client: Client, path: Path, session: str = "session-1") -> FakeAgent:
    """Run a program and send what was recorded."""
    agent = FakeAgent(client, session)
    agent.send_all(recorded(path, may_fail=True))
    return agent


def test_hints_appear_and_the_editor_is_asked_to_look(client: Client, path: Path) -> None:
    uri = client.open(path)
    assert client.places(uri) == []
    traced(client, path)
    assert client.wait(lambda: client.places(uri) == HINTS)
    assert client.wait(lambda: {kind for _, kind in client.refreshes} == {"hints", "lenses"})
    assert [hint.padding_left for hint in client.hints(uri)] == [True] * 4
    assert [(hint.position.line, hint.label) for hint in client.hints(uri, 10, 11)] == [
        (10, "f32[2,4]"),
        (11, "f32[2,4]"),
    ]


def test_rows_that_make_no_sense_spoil_no_answer(client: Client, path: Path) -> None:
    uri = client.open(path)
    agent = FakeAgent(client)
    for message in rows_of(recorded(path, may_fail=True)):
        spoilt = json.loads(json.dumps(message))
        for rows in (each for each in spoilt.values() if isinstance(each, list)):
            first = rows[0]
            rows[:0] = [None, [], [None, *first[1:]], [*first[:-1], {}], [10**30, *first[1:]]]
            rows.append([-1, *first[1:]])
        agent.send(spoilt)
    agent.send({"type": "captures", "values": [[None]], "names": 5})
    agent.send({"type": "watches", "changes": [[0, 1, "f", 1, {"event": []}]]})
    agent.send({"type": "status", "state": None, "passes": "many", "rank": 10**30})
    assert client.wait(lambda: client.places(uri) == HINTS)
    assert client.hover(uri, 10, 21) is not None
    question = {"parent": None, "filter": "", "offset": 0, "limit": 200}
    assert client.request("shapetrace/tree", question)["nodes"]
    assert client.lenses(uri)


def test_a_document_that_is_opened_later_has_hints_at_once(client: Client, path: Path) -> None:
    traced(client, path)
    other = client.open(path.parent / "other.py", "import torch\n")
    uri = client.open(path)
    client.wait(lambda: client.places(uri) == HINTS)
    assert client.places(other) == []
    client.close(uri)
    assert client.places(uri) == []


def test_other_files_are_no_reason_to_ask_the_editor(client: Client, path: Path) -> None:
    client.open(path.parent / "other.py", "import torch\n")
    agent = traced(client, path)
    agent.close()
    client.wait(lambda: client.statuses[-1:] and client.statuses[-1]["state"] == "gone")
    assert client.refreshes == []


def test_over_a_hint_there_is_its_story(client: Client, path: Path) -> None:
    uri = client.open(path)
    traced(client, path)
    client.wait(lambda: client.places(uri) == HINTS)
    stories = [client.tooltip(hint) for hint in client.hints(uri)]
    assert stories[0].startswith("```python\nx: f32[2,3]\n```")
    assert stories[1].startswith("```python\nLinear(x f32[2,3]) → f32[2,4]\n```")
    assert all(hint.tooltip is None for hint in client.hints(uri))


def test_hover_tells_the_story_of_the_expression(client: Client, path: Path) -> None:
    uri = client.open(path)
    traced(client, path)
    client.wait(lambda: client.places(uri) == HINTS)
    found = client.hover(uri, 10, PROGRAM.split("\n")[10].index("fc") + 1)
    assert found is not None
    assert found.range is not None
    assert (found.range.start.character, found.range.end.character) == (18, 28)
    assert "Linear(x f32[2,3]) → f32[2,4]" in str(found.contents)
    assert client.hover(uri, 0, 3) is None
    assert client.hover(uri, 4000, 3) is None
    assert client.hover("file:///nowhere.py", 0, 0) is None


def test_above_forward_there_is_a_lens(client: Client, path: Path) -> None:
    uri = client.open(path)
    traced(client, path)
    client.wait(lambda: client.places(uri) == HINTS)
    assert client.lenses(uri) == [(9, "1 call · 16 parameters · (f32[2,3]) → f32[2,4]")]


def test_hints_follow_edits(client: Client, path: Path) -> None:
    uri = client.open(path)
    traced(client, path)
    client.wait(lambda: client.places(uri) == HINTS)
    client.edit(uri, ((0, 0), (0, 0), "# one\n# two\n"))
    assert client.places(uri) == [(line + 2, column, text) for line, column, text in HINTS]
    # Behind a character of two units, and taken back.
    client.edit(uri, ((12, 14), (12, 15), "z"))
    assert [line for line, _, _ in client.places(uri)] == [11, 13, 16]
    client.edit(uri, ((12, 14), (12, 15), "y"), ((0, 0), (2, 0), ""))
    assert client.places(uri) == HINTS


def test_what_ran_is_compared_with_what_the_editor_has(client: Client, path: Path) -> None:
    traced(client, path)
    changed = PROGRAM.replace("y.relu()", "y.exp()").replace("class", "# new\nclass")
    uri = client.open(path, changed)
    expected = [(line + 1, column, text) for line, column, text in HINTS if line != 11]
    client.wait(lambda: client.places(uri) == expected)


def test_a_source_that_changed_since_it_ran_is_in_doubt(client: Client, path: Path) -> None:
    uri = client.open(path)
    agent = FakeAgent(client)
    for message in rows_of(recorded(path)):
        sources = [(file, None, None) for file, _, _ in message.get("sources", ())]
        agent.send({**message, "sources": sources})
    client.wait(lambda: client.refreshes)
    assert client.places(uri) == []
    assert client.lenses(uri) == []
    assert client.hover(uri, 10, 20) is None


def test_hints_can_be_hidden_moved_and_cut(client: Client, path: Path) -> None:
    uri = client.open(path)
    traced(client, path)
    client.wait(lambda: client.places(uri) == HINTS)
    client.notify("shapetrace/showHints", {"visible": False})
    assert client.places(uri) == []
    assert client.lenses(uri) == []
    client.notify("shapetrace/showHints", {"visible": True})
    client.configure({"hints": {"position": "afterName", "parameters": False}})
    assert client.places(uri) == [(10, 15, "f32[2,4]"), (11, 23, "f32[2,4]"), (14, 3, "f32[2,4]")]
    client.configure({"hints": {"position": "off"}, "codeLens": {"enabled": False}})
    assert client.places(uri) == []
    assert client.lenses(uri) == []
    client.configure({"hover": {"enabled": False}})
    assert client.places(uri) == HINTS
    assert client.hover(uri, 10, 20) is None


def test_settings_that_make_no_sense_are_told(client: Client, path: Path) -> None:
    client.configure({"hints": {"position": "above"}})
    message = "Shapetrace: shapetrace.hints.position must be one of lineEnd, afterName, off"
    assert client.wait(lambda: client.messages)[0].startswith(message)


def test_settings_count_from_the_start(tmp_path: Path, path: Path) -> None:
    with running(tmp_path / "storage", {"hints": {"maximumLength": 8}}) as client:
        uri = client.open(path)
        traced(client, path)
        client.wait(lambda: [text for *_, text in client.places(uri)][:1] == ["x f32[2…"])


def test_clearing_takes_everything_away(client: Client, path: Path) -> None:
    uri = client.open(path)
    traced(client, path)
    client.wait(lambda: client.places(uri) == HINTS)
    assert client.request("shapetrace/clear", {}) is None
    assert client.places(uri) == []
    assert client.lenses(uri) == []


def test_a_trace_is_written_to_a_file(client: Client, path: Path, tmp_path: Path) -> None:
    target = tmp_path / "träce.json"
    params = {"path": str(target), "session": None, "format": "json"}
    nothing = {"path": str(target), "ops": 0, "modules": 0}
    assert client.request("shapetrace/export", params) == nothing
    assert not target.exists()

    uri = client.open(path)
    traced(client, path)
    client.wait(lambda: client.places(uri) == HINTS)
    written = client.request("shapetrace/export", {**params, "session": "session-1"})
    trace = shapetrace.load(target)
    assert written == {"path": str(target), "ops": len(trace.ops), "modules": len(trace.modules)}
    assert [module.class_name for module in trace.modules] == ["Net", "Linear"]
    assert str(path) in json.loads(target.read_text())["run"]["files"]

    for form, expected in (("markdown", "| "), ("tree", "Net"), ("listing", "y = self.fc(x)")):
        target = tmp_path / f"trace.{form}"
        client.request("shapetrace/export", {"path": str(target), "session": None, "format": form})
        assert expected in target.read_text("utf-8")


def test_a_file_that_cannot_be_written_is_an_error(
    client: Client, path: Path, tmp_path: Path
) -> None:
    uri = client.open(path)
    traced(client, path)
    client.wait(lambda: client.places(uri) == HINTS)
    for form in ("json", "tree"):
        target = tmp_path / "missing" / "trace"
        params = {"path": str(target), "session": None, "format": form}
        with pytest.raises(JsonRpcException, match="cannot write"):
            client.request("shapetrace/export", params)


def test_links_lead_to_the_same_hints(client: Client, path: Path, tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(path.parent)
    uri = client.open(tmp_path / "linked" / path.name)
    traced(client, path)
    client.wait(lambda: client.places(uri) == HINTS)


def test_what_is_no_file_has_no_hints(client: Client, path: Path) -> None:
    for uri in ("untitled:Untitled-1", "vscode-notebook-cell:/a.ipynb#W0", "git:/a.py"):
        client.open_uri(uri, PROGRAM)
        client.edit(uri, ((0, 0), (0, 0), "\n"))
        assert client.places(uri) == []
        assert client.hover(uri, 0, 0) is None
        assert client.lenses(uri) == []
        client.close(uri)


def test_the_client_says_what_columns_are_counted_in(tmp_path: Path, path: Path) -> None:
    for encoding, column in (("utf-8", 41), ("utf-32", 36)):
        client = Client(tmp_path / "storage" / encoding)
        client.start(encodings=[encoding, "utf-16"])
        uri = client.open(path)
        traced(client, path, f"session-{encoding}")
        expected = [HINTS[0], (10, column, "f32[2,4]"), *HINTS[2:]]
        client.wait(lambda: client.places(uri) == expected)  # noqa: B023
        client.edit(uri, ((10, column), (10, column), "\n"))
        assert client.places(uri)[1] == (10, column, "f32[2,4]")
        assert client.stop() == 0
