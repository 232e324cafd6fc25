"""The messages between extension and server, as the samples have them that both sides share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shapetrace.server import protocol
from shapetrace.server.options import Options, read_options

SAMPLES = Path(__file__).parents[3] / "contract" / "editor"

NAMES = sorted(path.stem for path in SAMPLES.glob("*.json"))

READERS: dict[str, Any] = {
    protocol.OPEN_SESSION: protocol.read_open_session,
    protocol.CLOSE_SESSION: protocol.read_session,
    protocol.WAKE: protocol.read_session,
    protocol.EXPORT: protocol.read_export,
    protocol.SHOW_HINTS: protocol.read_show_hints,
    protocol.INLINE_VALUES: protocol.read_lines,
}


def _inline_values(values: list[dict[str, Any]]) -> protocol.InlineValues:
    return protocol.InlineValues(tuple(protocol.InlineValue(**each) for each in values))


RESULTS: dict[str, Any] = {
    protocol.OPEN_SESSION: protocol.OpenedSession,
    protocol.WAKE: protocol.Woken,
    protocol.EXPORT: protocol.Exported,
    protocol.INLINE_VALUES: _inline_values,
}


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_is_understood(name: str) -> None:
    sample = json.loads((SAMPLES / f"{name}.json").read_text("utf-8"))
    method, params = sample["method"], sample["params"]
    if method == "initialize":
        given = protocol.read_initialization(params["initializationOptions"])
        assert given.storage == params["initializationOptions"]["storage"]
        options, messages = read_options(given.settings)
        assert messages == []
        assert options != Options()
    elif method == "workspace/didChangeConfiguration":
        assert read_options(params["settings"]["shapetrace"]) == (Options(), [])
    elif method == protocol.STATUS:
        assert protocol.to_json(protocol.Status(**params)) == params
    elif method == protocol.CLEAR:
        assert params == {}
    else:
        message = READERS[method](params)
        assert {key: getattr(message, key) for key in params} == params
    if sample.get("result") is not None:
        assert protocol.to_json(RESULTS[method](**sample["result"])) == sample["result"]


def test_every_message_has_a_sample() -> None:
    samples = [json.loads((SAMPLES / f"{name}.json").read_text("utf-8")) for name in NAMES]
    assert {*READERS, protocol.CLEAR, protocol.STATUS} <= {sample["method"] for sample in samples}


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
    ],
)
def test_parameters_that_are_wrong_are_refused(reader: Any, params: object) -> None:
    with pytest.raises(protocol.MessageError):
        reader(params)


@pytest.mark.parametrize("options", [None, [], {}, {"storage": 3}, {"storage": ""}])
def test_a_client_may_say_nothing_at_the_start(options: object) -> None:
    assert protocol.read_initialization(options).storage is None
