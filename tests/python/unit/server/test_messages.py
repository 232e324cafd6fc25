"""The messages between extension and server: what crosses the wire, and who handles it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from types import NoneType
from typing import Any

import pytest
from pygls.exceptions import JsonRpcInvalidParams

from shapetrace.server.app import App, create_server, handlers
from shapetrace.server.documents import Documents
from shapetrace.server.features.code_lens import (
    NEXT_COMMAND,
    PIN_COMMAND,
    PREVIOUS_COMMAND,
    UNPIN_COMMAND,
)
from shapetrace.server.handling import handles
from shapetrace.server.messages import (
    calls,
    captures,
    comparison,
    document_places,
    focus,
    requested,
    sessions,
    tree,
)
from shapetrace.server.messages.all_messages import messages
from shapetrace.server.messages.codec import MessageError, structure, unstructure
from shapetrace.server.messages.declarations import Declaration, Request, ServerNotification
from shapetrace.server.messages.settings import Initialization, Options, read_options

SAMPLES = Path(__file__).parents[3] / "contract" / "editor"

BY_METHOD: dict[str, Declaration] = {message.method: message for message in messages().values()}


def sample_of(name: str) -> dict[str, Any]:
    sample: dict[str, Any] = json.loads((SAMPLES / f"{name}.json").read_text("utf-8"))
    return sample


@pytest.mark.parametrize("name", sorted(path.stem for path in SAMPLES.glob("*.json")))
def test_a_sample_is_what_its_message_declares(name: str) -> None:
    sample = sample_of(name)
    match sample:
        case {"method": "initialize", "params": {"initializationOptions": options}}:
            assert written(structure(options, Initialization), options) == options
            assert read_options(options["settings"])[1] == []
        case {"method": "workspace/didChangeConfiguration", "params": {"settings": settings}}:
            assert unstructure(read_options(settings["shapetrace"])) == [settings["shapetrace"], []]
        case {"method": method, "params": params}:
            message = BY_METHOD[method]
            assert written(structure(params, message.params), params) == params
            if isinstance(message, Request) and message.result is not NoneType:
                result = sample["result"]
                assert unstructure(structure(result, message.result)) == result


def written(message: object, keys: Iterable[str]) -> dict[str, Any]:
    """These keys of a message as JSON; a client may leave out others."""
    document = unstructure(message)
    return {key: document[key] for key in keys}


@pytest.mark.parametrize(
    ("kind", "params", "problem"),
    [
        (sessions.OpenSession, None, "must be an object"),
        (sessions.OpenSession, [], "must be an object"),
        (sessions.OpenSession, {"session": "s", "name": "n"}, "mode must be given"),
        (
            sessions.OpenSession,
            {"session": "", "name": "n", "mode": "debug"},
            "session must be a text that is not empty",
        ),
        (
            sessions.OpenSession,
            {"session": 1, "name": "n", "mode": "debug"},
            "session must be a text that is not empty",
        ),
        (
            sessions.OpenSession,
            {"session": "s", "name": "n", "mode": "profile"},
            "mode must be one of debug, forwardPass",
        ),
        (
            sessions.OpenSession,
            {"session": "s", "name": "n", "mode": "debug", "token": 3, "port": 1},
            "token must be a text that is not empty",
        ),
        (
            sessions.OpenSession,
            {"session": "s", "name": "n", "mode": "debug", "token": "t", "port": True},
            "port must be a whole number",
        ),
        (sessions.SessionReference, {}, "session must be given"),
        (
            sessions.EvaluationReference,
            {"session": "s", "number": "3"},
            "number must be a whole number from 0 on",
        ),
        (
            sessions.Export,
            {"path": "p", "format": "pdf"},
            "format must be one of json, markdown, tree, listing",
        ),
        (
            sessions.Export,
            {"path": "p", "format": ["json"]},
            "format must be one of json, markdown, tree, listing",
        ),
        (sessions.Export, {"format": "json"}, "path must be given"),
        (sessions.ShowHints, {"visible": "yes"}, "visible must be true or false"),
        (
            tree.TreeQuestion,
            {"parent": 3, "filter": "", "offset": 0, "limit": 1},
            "parent must be a text that is not empty",
        ),
        (
            tree.TreeQuestion,
            {"parent": None, "filter": 1, "offset": 0, "limit": 1},
            "filter must be a text",
        ),
        (
            tree.TreeQuestion,
            {"parent": None, "filter": "", "offset": -1, "limit": 1.0},
            "offset must be a whole number from 0 on; limit must be a whole number from 0 on",
        ),
        (
            tree.TreePathQuestion,
            {"line": 3, "character": 0, "near": None, "filter": ""},
            "uri must be given",
        ),
        (tree.NodeReference, {"node": 12}, "node must be a text that is not empty"),
        (
            calls.StepCall,
            {"uri": "file:///a.py", "line": 3, "character": 0, "direction": 0},
            "direction must be one of 1, -1",
        ),
        (
            calls.StepCall,
            {"uri": "file:///a.py", "line": 3, "character": 0, "direction": True},
            "direction must be one of 1, -1",
        ),
        (focus.Focus, {"stop": 12}, "stop must be an object"),
        (
            focus.Focus,
            {"stop": {"session": "", "process": 4711}},
            "stop.session must be a text that is not empty; stop.number must be given",
        ),
        (
            focus.Focus,
            {"stop": {"session": "s", "process": "4711", "number": -1}},
            (
                "stop.process must be a whole number from 0 on; "
                "stop.number must be a whole number from 0 on"
            ),
        ),
        (requested.WantedRequests, {"requests": "forward"}, "requests must be a list"),
        (
            requested.WantedRequests,
            {"requests": ["a", ""]},
            "requests[1] must be a text that is not empty",
        ),
        (captures.CapturePathsQuestion, {}, "either node or position must be given"),
        (
            captures.CapturePathsQuestion,
            {"node": "1", "position": {"uri": "u", "line": 0, "character": 0}},
            "either node or position must be given",
        ),
        (captures.CapturePathsQuestion, {"node": 3}, "node must be a text that is not empty"),
        (requested.RequestToCheck, {"request": 3}, "request must be a text"),
        (comparison.Compare, {}, "a must be given; b must be given"),
        (comparison.Compare, {"a": None, "b": None}, "one of a and b must name a file"),
        (comparison.Compare, {"a": "", "b": "b.json"}, "a must be a text that is not empty"),
        (comparison.Compare, {"a": 1, "b": "b.json"}, "a must be a text that is not empty"),
    ],
)
def test_parameters_that_are_wrong_are_refused(kind: Any, params: object, problem: str) -> None:
    with pytest.raises(MessageError) as caught:
        structure(params, kind)
    assert str(caught.value) == problem


def test_what_is_left_out_has_its_default() -> None:
    given = structure(
        {"session": "s", "name": "n", "mode": "debug", "new": 1}, sessions.OpenSession
    )
    assert given == sessions.OpenSession("s", "n", "debug", token=None, port=None)
    assert structure({}, focus.Focus) == focus.Focus(None)


def test_lists_are_written_as_lists() -> None:
    place = document_places.Place("file:///a.py", (1, 2), (3, 4))
    assert unstructure(tree.Placed(place)) == {
        "place": {"uri": "file:///a.py", "start": [1, 2], "end": [3, 4]}
    }
    assert unstructure(None) is None


def test_every_message_to_the_server_has_one_handler() -> None:
    app = App(create_server(), Documents())
    handled = [method for method, _ in handlers(app)]
    sent = [each.method for each in messages().values() if not isinstance(each, ServerNotification)]
    assert sorted(handled) == sorted(sent)


def test_a_handler_gets_and_gives_what_the_message_declares() -> None:
    asked: list[sessions.SessionReference] = []

    def wake(given: sessions.SessionReference) -> sessions.ProcessesTold:
        asked.append(given)
        return sessions.ProcessesTold(2)

    method, handler = handles(sessions.WAKE, wake)
    assert method == "shapetrace/wake"
    # At once: what the editor asks next must find it done.
    assert handler({"session": "s"}) == {"processes": 2}
    assert asked == [sessions.SessionReference("s")]


def test_a_handler_may_take_its_time() -> None:
    async def wake(given: sessions.SessionReference) -> sessions.ProcessesTold:
        await asyncio.sleep(0)
        return sessions.ProcessesTold(len(given.session))

    _, handler = handles(sessions.WAKE, wake)
    assert asyncio.run(handler({"session": "abc"})) == {"processes": 3}


def test_a_request_that_is_wrong_is_refused_with_its_name() -> None:
    def wake(given: sessions.SessionReference) -> sessions.ProcessesTold:
        raise AssertionError("is not called")

    _, handler = handles(sessions.WAKE, wake)
    with pytest.raises(JsonRpcInvalidParams) as caught:
        handler({"session": 3})
    expected = "shapetrace/wake: session must be a text that is not empty"
    assert caught.value.message == expected


def test_no_two_messages_have_one_method() -> None:
    assert len(BY_METHOD) == len(messages())


@pytest.mark.parametrize("options", [None, {}])
def test_a_client_may_say_nothing_at_the_start(options: object) -> None:
    given = structure(options or {}, Initialization)
    assert given == Initialization(None, None, (), ())
    assert read_options(given.settings) == (Options(), [])


def test_lenses_run_commands_that_there_are() -> None:
    manifest = json.loads((SAMPLES.parents[2] / "package.json").read_text("utf-8"))
    commands = {each["command"] for each in manifest["contributes"]["commands"]}
    assert {PIN_COMMAND, UNPIN_COMMAND, PREVIOUS_COMMAND, NEXT_COMMAND} <= commands
