"""Captured values, told to the real server by an agent, and asked of it by a real client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shapetrace.transport.messages import write
from shapetrace.transport.requested import (
    CapturedValue,
    CaptureNews,
    RequestedName,
    Statistics,
)
from tests.python.e2e.server.test_navigation import nodes
from tests.support.language_client import Client, FakeAgent, running
from tests.support.rows import recorded

pytestmark = pytest.mark.e2e

PROGRAM = """\
import torch
from torch import nn


class Block(nn.Module):
    def forward(self, x):
        "😀"; scores = x.relu()  # größe
        return scores[1:]

    def unused(self, y):
        z = y + 1
        return z


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


out = Net()(torch.ones(5))
"""
LINES = PROGRAM.split("\n")
SCORES = next(number for number, line in enumerate(LINES) if "relu" in line)

PATH = "blocks.*.forward.scores"
NEWS = CaptureNews(
    requests=(PATH, "forward.mask"),
    problems={
        "forward.mask": "matches nothing: function 'forward' has no 'mask'; nearest there: x"
    },
    names=(RequestedName(1, "blocks.1.forward.scores", PATH, "Net"),),
    items=(
        CapturedValue(
            *(1, 1, 1, "train", "Tensor", "float32", (4,)),
            statistics=Statistics(4, 4, 0.0, 1.0, 0.5, bins=(2, 2)),
        ),
    ),
)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """An editor with its server, where something is wanted from the beginning."""
    with running(tmp_path / "storage", captures=["forward.loss"]) as running_client:
        yield running_client


def captured(client: Client, path: Path, session: str = "session-1") -> FakeAgent:
    agent = FakeAgent(client, session)
    agent.send_all(recorded(path))
    agent.send(write(NEWS))
    return agent


def rows(client: Client, parent: str | None = "captured") -> list[str]:
    return [f"{node['label']}: {node['description']}" for node in nodes(client, parent)]


def paths_at(client: Client, uri: str, line: int, column: int) -> dict[str, Any]:
    position = {"uri": uri, "line": line, "character": column}
    answer: dict[str, Any] = client.request("shapetrace/capturePaths", {"position": position})
    return answer


WAITING = "forward.loss: from the next run on"
FOUND = f"{PATH}: 1 value of 1 name"
MISSING = "forward.mask: matches nothing: function 'forward' has no 'mask'; nearest there: x"


def test_captured_values_stand_in_the_tree_before_the_calls(client: Client, path: Path) -> None:
    assert rows(client, None) == ["Captured values: "]
    assert rows(client) == [WAITING]
    captured(client, path)
    client.wait(lambda: rows(client) == [WAITING, FOUND, MISSING])
    assert [node["label"] for node in nodes(client)] == ["Captured values", "ones(5)", "Net"]
    (problem,) = client.capture_problems
    assert problem["request"] == "forward.mask"
    wildcard = nodes(client, "captured")[1]
    (name,) = nodes(client, wildcard["id"])
    assert name["histogram"] == {"low": "0", "high": "1", "heights": [100, 100]}
    (value,) = nodes(client, name["id"])
    assert value["label"] == "iteration 1"
    story = client.request("shapetrace/story", {"node": value["id"]})["markdown"]
    assert "blocks.1.forward.scores" in story


def test_pages_are_as_if_captured_values_were_a_call(client: Client, path: Path) -> None:
    captured(client, path)
    client.wait(lambda: len(nodes(client)) == 3)
    pages = [
        client.request(
            "shapetrace/tree", {"parent": None, "filter": "", "offset": offset, "limit": 1}
        )
        for offset in range(3)
    ]
    assert [page["nodes"][0]["label"] for page in pages] == ["Captured values", "ones(5)", "Net"]
    assert [page["hasMore"] for page in pages] == [True, True, False]
    uri = client.open(path)
    place = {"uri": uri, "line": SCORES, "character": 20, "near": None, "filter": ""}
    steps = client.request("shapetrace/treePath", place)["path"]
    assert [step["position"] for step in steps] == [2, 0, 0]
    place["filter"] = "relu"
    steps = client.request("shapetrace/treePath", place)["path"]
    assert steps[0]["position"] == 0


def test_what_is_wanted_changes(client: Client, path: Path) -> None:
    assert rows(client) == [WAITING]
    changes = client.tree_changes
    client.notify("shapetrace/wantCaptures", {"requests": ["forward"]})
    client.wait(lambda: client.tree_changes > changes)
    assert rows(client) == ["forward: from the next run on"]
    client.notify("shapetrace/wantCaptures", {"requests": []})
    client.wait(lambda: nodes(client) == [])


def test_a_click_goes_to_the_line(client: Client, path: Path) -> None:
    captured(client, path)
    client.wait(lambda: len(rows(client)) == 3)
    node = nodes(client, "captured")[1]["id"]
    (name,) = nodes(client, node)
    closed = {"uri": path.as_uri(), "start": [SCORES, 0], "end": [SCORES, 0]}
    for each in (node, name["id"], nodes(client, name["id"])[0]["id"]):
        assert client.request("shapetrace/place", {"node": each}) == {"place": closed}
    uri = client.open(path)
    client.edit(uri, ((0, 0), (0, 0), "# one\n"))
    moved = {"uri": uri, "start": [SCORES + 1, 0], "end": [SCORES + 1, 0]}
    assert client.request("shapetrace/place", {"node": node}) == {"place": moved}
    missing = nodes(client, "captured")[2]["id"]
    assert client.request("shapetrace/place", {"node": missing}) == {"place": None}


def test_paths_of_what_is_at_the_cursor(client: Client, path: Path) -> None:
    uri = client.open(path)
    column = LINES[SCORES].index("scores") + 2
    everywhere = {"path": "**.forward.scores", "description": "in all modules that have one"}
    expected = {"name": "scores", "paths": [everywhere]}
    # Behind the smiley, which is two characters to an editor.
    assert paths_at(client, uri, SCORES, column + 1) == expected
    captured(client, path)
    client.wait(lambda: len(rows(client)) == 3)
    found = paths_at(client, uri, SCORES, column + 1)["paths"]
    assert [each["path"] for each in found] == [
        PATH,
        "blocks.0.forward.scores",
        "blocks.1.forward.scores",
        "**.forward.scores",
    ]
    # The function of a class that ran, in a line that has not.
    client.edit(uri, ((SCORES, 0), (SCORES, 0), "        added = x + 1\n"))
    found = paths_at(client, uri, SCORES, 9)["paths"]
    assert found[0]["path"] == "blocks.*.forward.added"
    assert paths_at(client, uri, 0, 0) == {"name": "", "paths": []}
    assert paths_at(client, uri, 1000, 0) == {"name": "", "paths": []}
    assert paths_at(client, "file:///other.py", 0, 0) == {"name": "", "paths": []}


def test_paths_of_a_node(client: Client, path: Path) -> None:
    captured(client, path)
    client.wait(lambda: len(rows(client)) == 3)
    net = next(node["id"] for node in nodes(client) if node["label"] == "Net")
    block = nodes(client, net)[1]
    answer = client.request("shapetrace/capturePaths", {"node": block["id"]})
    assert [each["path"] for each in answer["paths"]] == ["blocks.1", "blocks.*"]
    relu = nodes(client, block["id"])[0]
    answer = client.request("shapetrace/capturePaths", {"node": relu["id"]})
    assert answer["paths"][0]["path"] == "blocks.1.forward.scores"
    assert client.request("shapetrace/capturePaths", {"node": "captured"})["paths"] == []


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("layers.*.attn.forward.scores", None),
        ("**", None),
        ("", "character 1: a name or a wildcard is missing"),
        ("layers[0]", "character 7: items are written as components"),
        ("a..b", "character 3: a name or a wildcard is missing"),
    ],
)
def test_a_path_is_checked(client: Client, path: str, problem: str | None) -> None:
    answer = client.request("shapetrace/checkPath", {"request": path})["problem"]
    assert answer is None if problem is None else problem in answer


def test_a_restarted_server_reads_them_back(tmp_path: Path, path: Path) -> None:
    with running(tmp_path / "storage") as client:
        agent = captured(client, path)
        client.wait(lambda: rows(client) == [FOUND, MISSING])
        agent.close()
        client.wait(lambda: client.statuses and client.statuses[-1]["state"] == "gone")
    with running(tmp_path / "storage") as client:
        client.wait(lambda: rows(client) == [FOUND, MISSING])
        assert client.capture_problems == []


def test_what_is_cleared_is_gone(client: Client, path: Path) -> None:
    captured(client, path)
    client.wait(lambda: len(rows(client)) == 3)
    client.request("shapetrace/clear", {})
    assert rows(client) == [WAITING]
