"""The messages between extension and server, as the samples have them that both sides share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shapetrace.server.focus import read_focus
from shapetrace.server.messages import captures as capture_messages
from shapetrace.server.messages import comparison as compare_messages
from shapetrace.server.messages import tree as protocol
from shapetrace.server.messages import watches as watch_messages
from shapetrace.server.messages.codec import MessageError
from shapetrace.server.messages.settings import Options, read_options

SAMPLES = Path(__file__).parents[3] / "contract" / "editor"

NAMES = sorted(path.stem for path in SAMPLES.glob("*.json"))

READERS: dict[str, Any] = {
    protocol.OPEN_SESSION: protocol.read_open_session,
    protocol.CLOSE_SESSION: protocol.read_session,
    protocol.WAKE: protocol.read_session,
    protocol.CANCEL_EVALUATION: protocol.read_evaluation,
    protocol.EXPORT: protocol.read_export,
    protocol.SHOW_HINTS: protocol.read_show_hints,
    protocol.TREE: protocol.read_tree,
    protocol.TREE_PATH: protocol.read_tree_path,
    protocol.STORY: protocol.read_node,
    protocol.PLACE: protocol.read_node,
    protocol.CALLS: protocol.read_position,
    protocol.PIN: protocol.read_node,
    protocol.STEP_CALL: protocol.read_step_call,
    protocol.FOCUS: read_focus,
    protocol.INLINE_VALUES: protocol.read_lines,
    capture_messages.WANT_CAPTURES: capture_messages.read_wanted,
    capture_messages.CAPTURE_PATHS: capture_messages.read_capture_paths,
    capture_messages.CHECK_PATH: capture_messages.read_path_to_check,
    compare_messages.COMPARE: compare_messages.read_compare,
    watch_messages.WANT_WATCHES: watch_messages.read_wanted,
    watch_messages.WATCH_AT: protocol.read_position,
    watch_messages.CHECK_WATCH: watch_messages.read_watch_to_check,
}

RESULTS: dict[str, Any] = {
    protocol.OPEN_SESSION: protocol.OpenedSession,
    protocol.WAKE: protocol.ProcessesTold,
    protocol.CANCEL_EVALUATION: protocol.ProcessesTold,
    protocol.EXPORT: protocol.Exported,
    protocol.TREE: protocol.TreePage,
    protocol.TREE_PATH: protocol.TreePath,
    protocol.STORY: protocol.Story,
    protocol.PLACE: protocol.Placed,
    protocol.CALLS: protocol.Calls,
    protocol.PIN: protocol.Pinned,
    protocol.STEP_CALL: protocol.Pinned,
    protocol.INLINE_VALUES: protocol.InlineValues,
    capture_messages.CAPTURE_PATHS: capture_messages.CapturePaths,
    capture_messages.CHECK_PATH: capture_messages.CheckedPath,
    compare_messages.COMPARE: compare_messages.Compared,
    watch_messages.WATCH_AT: watch_messages.Watchable,
    watch_messages.CHECK_WATCH: watch_messages.CheckedWatch,
}

INNER: dict[str, Any] = {
    "nodes": protocol.TreeNode,
    "path": protocol.TreeStep,
    "place": protocol.Place,
    "calls": protocol.Pin,
    "pin": protocol.Pin,
    "values": protocol.InlineValue,
    "histogram": protocol.Histogram,
    "paths": capture_messages.CapturePath,
    "differences": compare_messages.ComparedCall,
    "a": compare_messages.ComparedPlace,
    "b": compare_messages.ComparedPlace,
}
"""What the results and notifications have inside."""


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_is_understood(name: str) -> None:
    sample = json.loads((SAMPLES / f"{name}.json").read_text("utf-8"))
    method, params = sample["method"], sample["params"]
    if method == "initialize":
        given = protocol.read_initialization(params["initializationOptions"])
        assert given.storage == params["initializationOptions"]["storage"]
        assert list(given.captures) == params["initializationOptions"]["captures"]
        assert list(given.watches) == params["initializationOptions"]["watches"]
        options, messages = read_options(given.settings)
        assert messages == []
        assert options != Options()
    elif method == "workspace/didChangeConfiguration":
        assert read_options(params["settings"]["shapetrace"]) == (Options(), [])
    elif method == protocol.STATUS:
        assert protocol.to_json(protocol.Status(**params)) == params
    elif method in (protocol.CLEAR, protocol.TRACE_CHANGED):
        assert params == {}
    elif method == capture_messages.CAPTURE_PROBLEM:
        assert protocol.to_json(capture_messages.CaptureProblem(**params)) == params
    elif method == watch_messages.WATCH_PROBLEM:
        assert protocol.to_json(watch_messages.WatchProblem(**params)) == params
    elif method == protocol.PIN_CHANGED:
        assert protocol.to_json(decoded(protocol.Pinned, params)) == params
    else:
        written = protocol.to_json(READERS[method](params))
        written.update(written.pop("position", None) or {})
        assert {key: written[key] for key in params} == params
    if sample.get("result") is not None:
        assert protocol.to_json(decoded(RESULTS[method], sample["result"])) == sample["result"]


def decoded(kind: Any, document: dict[str, Any]) -> Any:
    """A message from what JSON has of it."""
    values: dict[str, Any] = {}
    for key, value in document.items():
        if isinstance(value, list):
            inner = INNER.get(key)
            value = tuple(each if inner is None else decoded(inner, each) for each in value)
        elif isinstance(value, dict):
            value = decoded(INNER[key], value)
        values["".join(f"_{c.lower()}" if c.isupper() else c for c in key)] = value
    return kind(**values)


def test_every_message_has_a_sample() -> None:
    samples = [json.loads((SAMPLES / f"{name}.json").read_text("utf-8")) for name in NAMES]
    told = {
        protocol.STATUS,
        protocol.TRACE_CHANGED,
        protocol.PIN_CHANGED,
        capture_messages.CAPTURE_PROBLEM,
        watch_messages.WATCH_PROBLEM,
    }
    assert {*READERS, protocol.CLEAR, *told} <= {sample["method"] for sample in samples}


@pytest.mark.parametrize(
    ("reader", "params"),
    [
        (protocol.read_open_session, None),
        (protocol.read_open_session, []),
        (protocol.read_open_session, {"session": "s", "name": "n"}),
        (protocol.read_open_session, {"session": "", "name": "n", "mode": "debug"}),
        (protocol.read_open_session, {"session": 1, "name": "n", "mode": "debug"}),
        (
            protocol.read_open_session,
            {"session": "s", "name": "n", "mode": "debug", "token": 3, "port": 1},
        ),
        (
            protocol.read_open_session,
            {"session": "s", "name": "n", "mode": "debug", "token": "t", "port": True},
        ),
        (protocol.read_session, {}),
        (protocol.read_export, {"path": "p", "format": "pdf"}),
        (protocol.read_export, {"path": "p", "format": ["json"]}),
        (protocol.read_export, {"format": "json"}),
        (protocol.read_show_hints, {"visible": "yes"}),
        (protocol.read_tree, {"parent": 3, "filter": "", "offset": 0, "limit": 1}),
        (protocol.read_tree, {"parent": None, "filter": 1, "offset": 0, "limit": 1}),
        (protocol.read_tree, {"parent": None, "filter": "", "offset": -1, "limit": 1}),
        (protocol.read_tree_path, {"line": 3}),
        (protocol.read_node, {"node": 12}),
        (protocol.read_step_call, {"uri": "file:///a.py", "line": 3, "direction": 0}),
        (read_focus, {"session": "s", "process": 1, "call": 1, "reached": ["1"]}),
        (read_focus, {"process": None}),
        (read_focus, {"session": "s", "outer": [{"reached": []}]}),
        (read_focus, {"session": "s", "outer": 1}),
        (read_focus, {"session": "s", "variables": [{"name": 3}]}),
        (read_focus, {"session": "s", "variables": [{"name": "x", "stores": [["1"]]}]}),
        (read_focus, {"session": "s", "unbound": "x"}),
        (capture_messages.read_wanted, {"paths": "forward"}),
        (capture_messages.read_wanted, {"paths": [""]}),
        (capture_messages.read_capture_paths, {}),
        (capture_messages.read_capture_paths, {"node": 3}),
        (capture_messages.read_path_to_check, {"path": 3}),
        (compare_messages.read_compare, {}),
        (compare_messages.read_compare, {"a": None, "b": None}),
        (compare_messages.read_compare, {"a": "", "b": "b.json"}),
        (compare_messages.read_compare, {"a": 1, "b": "b.json"}),
        (watch_messages.read_wanted, {"names": "video"}),
        (watch_messages.read_watch_to_check, {"name": 3}),
    ],
)
def test_parameters_that_are_wrong_are_refused(reader: Any, params: object) -> None:
    with pytest.raises(MessageError):
        reader(params)


@pytest.mark.parametrize("options", [None, [], {}, {"storage": 3}, {"storage": ""}])
def test_a_client_may_say_nothing_at_the_start(options: object) -> None:
    given = protocol.read_initialization(options)
    assert (given.storage, given.captures, given.watches) == (None, (), ())


def test_lenses_run_commands_that_there_are() -> None:
    manifest = json.loads((SAMPLES.parents[2] / "package.json").read_text("utf-8"))
    commands = {each["command"] for each in manifest["contributes"]["commands"]}
    assert {
        protocol.PIN_COMMAND,
        protocol.UNPIN_COMMAND,
        protocol.PREVIOUS_COMMAND,
        protocol.NEXT_COMMAND,
    } <= commands
