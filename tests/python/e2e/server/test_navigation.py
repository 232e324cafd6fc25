"""The trace tree, pins and stack frames, asked of the real server by a real client."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from pygls.exceptions import JsonRpcException

from shapetrace.events.stop import Stop, StoppedFunction
from shapetrace.transport.messages import NumberedStop, write
from tests.support.language_client import PATIENCE, Client, FakeAgent
from tests.support.rows import recorded

pytestmark = pytest.mark.e2e

PROGRAM = """\
import torch
from torch import nn


class Block(nn.Module):
    def forward(self, x):
        "😀"; y = x.relu()  # größe
        return y[1:]


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

NUMBERS = itertools.count(1)
"""Of stops."""

LOOP = PROGRAM.split("\n").index("            x = block(x)")
RELU = next(number for number, line in enumerate(PROGRAM.split("\n")) if "relu" in line)


def traced(client: Client, path: Path, session: str = "session-1") -> FakeAgent:
    agent = FakeAgent(client, session)
    agent.send_all(recorded(path))
    return agent


def nodes(client: Client, parent: str | None = None, text: str = "") -> list[dict[str, Any]]:
    params = {"parent": parent, "filter": text, "offset": 0, "limit": 100}
    found: list[dict[str, Any]] = client.request("shapetrace/tree", params)["nodes"]
    return found


def below(client: Client, *labels: str) -> dict[str, str]:
    """The labels and ids of what is below a node, which is named from the outermost on."""
    parent = None
    for label in labels:
        parent = next(node["id"] for node in nodes(client, parent) if node["label"] == label)
    return {node["label"]: node["id"] for node in nodes(client, parent)}


def stop_in_block(path: Path, node: str, **changes: Any) -> Stop:
    """A stop in the call of a node, which has not reached anything yet."""
    own = {"file": str(path), "function": "Block.forward", "line": RELU + 1, **changes}
    return Stop(number_of(node), StoppedFunction(**{"reached": frozenset(), **own}))


def number_of(node: str) -> int:
    """The number of the call that a node of the tree shows."""
    return int(node.partition(".")[2])


def tell(agent: FakeAgent, stop: Stop, session: str = "session-1") -> dict[str, Any]:
    """Have an agent send a stop; returns how the editor selects it."""
    number = next(NUMBERS)
    agent.send(write(NumberedStop(number, stop)))
    return {"stop": {"session": session, "process": agent.process, "number": number}}


def hint_of_relu(client: Client, uri: str) -> str:
    return next(text for line, _, text in client.places(uri) if line == RELU)


def test_the_tree_is_told_of_once_it_has_been_asked_for(client: Client, path: Path) -> None:
    assert nodes(client) == []
    traced(client, path)
    client.wait(lambda: client.tree_changes)
    client.wait(lambda: [node["label"] for node in nodes(client)] == ["ones(5)", "Net"])
    assert list(below(client, "Net", "blocks.0")) == ["relu()", "[1:]"]
    (found,) = nodes(client, None, "blocks.1")
    assert (found["label"], found["isExpanded"], found["kind"]) == ("Net", True, "module")


def test_a_node_knows_its_place_in_the_document(client: Client, path: Path) -> None:
    traced(client, path)
    client.wait(lambda: len(nodes(client)) == 2)
    relu = below(client, "Net", "blocks.1")["relu()"]
    closed = {"uri": path.as_uri(), "start": [RELU, 18], "end": [RELU, 26]}
    assert client.request("shapetrace/place", {"node": relu}) == {"place": closed}
    uri = client.open(path)
    client.edit(uri, ((0, 0), (0, 0), "# one\n# two\n"))
    moved = {"uri": uri, "start": [RELU + 2, 18], "end": [RELU + 2, 26]}
    assert client.request("shapetrace/place", {"node": relu}) == {"place": moved}
    client.edit(uri, ((RELU + 2, 0), (RELU + 3, 0), ""))
    assert client.request("shapetrace/place", {"node": relu}) == {"place": None}
    assert client.request("shapetrace/place", {"node": "77.1"}) == {"place": None}


def test_a_place_in_the_document_knows_its_node(client: Client, path: Path) -> None:
    uri = client.open(path)
    traced(client, path)
    client.wait(lambda: len(nodes(client)) == 2)
    net = below(client)["Net"]
    second = below(client, "Net")["blocks.1"]

    def found(line: int, near: str | None = None) -> list[str] | None:
        params = {"uri": uri, "line": line, "character": 20, "near": near, "filter": ""}
        steps = client.request("shapetrace/treePath", params)["path"]
        return None if steps is None else [step["id"] for step in steps]

    assert found(RELU) == [
        *(net, below(client, "Net")["blocks.0"]),
        below(client, "Net", "blocks.0")["relu()"],
    ]
    assert found(RELU, second) == [net, second, below(client, "Net", "blocks.1")["relu()"]]
    assert found(0) is None
    assert found(4000) is None
    client.request("shapetrace/pin", {"node": second})
    assert found(RELU) == found(RELU, second)


def test_where_the_program_stands_is_found_in_its_own_call(client: Client, path: Path) -> None:
    uri = client.open(path)
    agent = traced(client, path)
    client.wait(lambda: len(nodes(client)) == 2)
    net = below(client)["Net"]
    first = below(client, "Net")["blocks.0"]
    second = below(client, "Net")["blocks.1"]
    relu = below(client, "Net", "blocks.1")["relu()"]
    ones = next(number for number, line in enumerate(PROGRAM.split("\n")) if "ones(5)" in line)

    def found(near: str | None, line: int = RELU) -> list[str]:
        params = {"uri": uri, "line": line, "character": 20, "near": near, "filter": ""}
        return [step["id"] for step in client.request("shapetrace/treePath", params)["path"]]

    assert found(None)[:2] == [net, first]
    client.request("shapetrace/focus", tell(agent, stop_in_block(path, second)))
    assert found(None) == [net, second, relu]
    # What others have made is not shown in its place.
    assert found(None, ones) == [net, second]
    in_net = stop_in_block(path, net, function="Net.forward", line=LOOP + 1)
    client.request("shapetrace/focus", tell(agent, in_net))
    # Of several calls of a line that runs it is the last one.
    assert found(None, LOOP) == [net, second]
    assert found(None) == [net, second, relu]
    assert found(first, LOOP) == [net, first]


def test_calls_are_pinned_and_gone_through(client: Client, path: Path) -> None:
    uri = client.open(path)
    traced(client, path)
    client.wait(lambda: client.places(uri) and hint_of_relu(client, uri) == "f32[4|5]")
    position = {"uri": uri, "line": LOOP, "character": 0}
    choice = client.request("shapetrace/calls", position)
    assert [call["label"] for call in choice["calls"]] == ["blocks.0", "blocks.1"]
    assert choice["current"] is None

    client.refreshes.clear()
    pinned = client.request("shapetrace/pin", {"node": choice["calls"][1]["node"]})["pin"]
    assert pinned["label"] == "blocks.1"
    assert hint_of_relu(client, uri) == "f32[4]"
    client.wait(lambda: {kind for _, kind in client.refreshes} == {"hints", "lenses"})
    assert client.request("shapetrace/calls", position)["current"] == 1
    texts = [text for _, text in client.lenses(uri)]
    assert "blocks.1 · 2 of 2 · (f32[4]) → f32[3]" in texts

    for direction, label in ((1, "blocks.1"), (-1, "blocks.0"), (-1, "blocks.0"), (1, "blocks.1")):
        params = {**position, "direction": direction}
        assert client.request("shapetrace/stepCall", params)["pin"]["label"] == label
    assert client.request("shapetrace/pin", {"node": None}) == {"pin": None, "lost": None}
    assert hint_of_relu(client, uri) == "f32[4|5]"
    client.wait(lambda: client.pins[-1:] == [None])
    nowhere = {"uri": uri, "line": 0, "character": 0}
    assert client.request("shapetrace/calls", nowhere) == {"calls": [], "current": None}
    stepped = client.request("shapetrace/stepCall", {**nowhere, "direction": 1})
    assert stepped == {"pin": None, "lost": None}


def test_steps_pass_over_what_is_no_module(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    text = PROGRAM.replace("in self.blocks:", "in (*self.blocks, torch.relu, Block()):")
    path.write_text(text, "utf-8")
    uri = client.open(path)
    traced(client, path)
    client.wait(lambda: len(nodes(client)) == 2)
    position = {"uri": uri, "line": LOOP, "character": 0}
    for direction, label in ((1, "blocks.0"), (1, "blocks.1"), (1, "<Block>"), (-1, "blocks.1")):
        params = {**position, "direction": direction}
        assert client.request("shapetrace/stepCall", params)["pin"]["label"] == label


def test_a_step_to_nowhere_leaves_all_as_it_is(client: Client, path: Path) -> None:
    uri = client.open(path)
    agent = traced(client, path)
    client.wait(lambda: client.places(uri) and hint_of_relu(client, uri) == "f32[4|5]")
    first, second = list(below(client, "Net").values())[:2]
    client.request("shapetrace/pin", {"node": first})
    client.request("shapetrace/focus", tell(agent, stop_in_block(path, second)))
    assert hint_of_relu(client, uri) == "~ f32[4]"
    nowhere = {"uri": uri, "line": 0, "character": 0, "direction": 1}
    assert client.request("shapetrace/stepCall", nowhere) == {"pin": None, "lost": None}
    assert hint_of_relu(client, uri) == "~ f32[4]"
    assert [pin and pin["label"] for pin in client.pins] == ["blocks.0"]


def test_a_pin_is_lost_with_the_trace(client: Client, path: Path) -> None:
    traced(client, path)
    client.wait(lambda: len(nodes(client)) == 2)
    assert client.request("shapetrace/pin", {"node": below(client)["Net"]})["pin"] is not None
    client.request("shapetrace/clear", {})
    client.wait(lambda: client.pins[-1:] == [None])
    assert client.lost_pins == []


def test_a_pin_goes_along_to_the_next_run(client: Client, path: Path) -> None:
    uri = client.open(path)
    traced(client, path).close()
    client.wait(lambda: len(nodes(client)) == 2)
    client.wait(lambda: client.statuses[-1]["state"] == "gone")
    former = below(client, "Net")["blocks.1"]
    client.request("shapetrace/pin", {"node": former})
    text = PROGRAM.replace("ones(5)", "ones(7)")
    path.write_text(text, encoding="utf-8")
    client.close(uri)
    uri = client.open(path)
    agent = traced(client, path, "session-2")
    client.wait(lambda: client.places(uri) and hint_of_relu(client, uri) == "f32[6]")
    pin = client.pins[-1]
    assert pin is not None
    assert (pin["label"], pin["isWaiting"]) == ("blocks.1", False)
    assert pin["node"] == below(client, "Net")["blocks.1"] != former

    # The one after that has a single block.
    path.write_text(text.replace("Block(), Block()", "Block()"), encoding="utf-8")
    client.close(uri)
    uri = client.open(path)
    agent.close()
    agent = traced(client, path, "session-3")
    client.wait(lambda: client.places(uri) and hint_of_relu(client, uri) == "f32[7]")
    client.wait(lambda: (client.pins[-1] or {}).get("isWaiting"))
    agent.close()
    client.request("shapetrace/closeSession", {"session": "session-3"})
    client.wait(lambda: client.pins[-1:] == [None])
    assert client.lost_pins == ["blocks.1"]


def test_a_frame_shows_what_its_call_has_come_to(client: Client, path: Path) -> None:
    uri = client.open(path)
    agent = traced(client, path)
    client.wait(lambda: client.places(uri) and hint_of_relu(client, uri) == "f32[4|5]")
    second = below(client, "Net")["blocks.1"]
    relu = below(client, "Net", "blocks.1")["relu()"]
    stop = tell(agent, stop_in_block(path, second))
    place = {"file": str(path), "line": RELU + 1}
    assert client.request("shapetrace/focus", stop) == {"place": place}
    assert hint_of_relu(client, uri) == "~ f32[4]"
    further = stop_in_block(path, second, reached=frozenset({number_of(relu)}))
    client.request("shapetrace/focus", tell(agent, further))
    assert hint_of_relu(client, uri) == "f32[4]"
    assert client.request("shapetrace/focus", {}) == {"place": None}
    assert hint_of_relu(client, uri) == "f32[4|5]"


def test_a_frame_may_be_told_of_before_its_process(client: Client, path: Path) -> None:
    uri = client.open(path)
    recorder = recorded(path)
    traced(client, path)
    client.wait(lambda: client.places(uri) and hint_of_relu(client, uri) == "f32[4|5]")
    stop = stop_in_block(path, below(client, "Net")["blocks.1"])
    reference = {"session": "session-2", "process": 4711, "number": 1}
    focused = client.begin_request("shapetrace/focus", {"stop": reference})
    assert hint_of_relu(client, uri) == "f32[4|5]"
    agent = FakeAgent(client, "session-2", process=4711)
    agent.send_all(recorder)
    assert not focused.done()
    agent.send(write(NumberedStop(1, stop)))
    assert focused.result(PATIENCE)["place"]["line"] == RELU + 1
    assert hint_of_relu(client, uri) == "~ f32[4]"
    # It connects anew, and tells all once more.
    agent.close()
    agent = FakeAgent(client, "session-2", process=4711)
    agent.send_all(recorder)
    agent.send(write(NumberedStop(1, stop)))
    client.wait(lambda: hint_of_relu(client, uri) == "~ f32[4]")


def test_a_stop_that_is_wrong_is_refused_and_the_next_one_is_shown(
    client: Client, path: Path
) -> None:
    uri = client.open(path)
    agent = traced(client, path)
    client.wait(lambda: client.places(uri) and hint_of_relu(client, uri) == "f32[4|5]")
    stop = stop_in_block(path, below(client, "Net")["blocks.1"])
    message = write(NumberedStop(1, stop))
    agent.send({**message, "stop": {**message["stop"], "own": "nowhere"}})
    focused = client.begin_request(
        "shapetrace/focus",
        {"stop": {"session": "session-1", "process": agent.process, "number": 1}},
    )
    client.request("shapetrace/focus", tell(agent, stop))
    assert focused.result(PATIENCE) == {"place": None}
    assert hint_of_relu(client, uri) == "~ f32[4]"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tree", {"parent": 3}),
        ("treePath", {}),
        ("stepCall", {"uri": "file:///a.py", "line": 1, "direction": 2}),
        ("focus", {"stop": {"process": 1}}),
    ],
)
def test_what_makes_no_sense_is_refused(client: Client, method: str, params: Any) -> None:
    with pytest.raises(JsonRpcException, match="must"):
        client.request(f"shapetrace/{method}", params)
