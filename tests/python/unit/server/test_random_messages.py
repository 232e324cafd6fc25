"""Messages in which anything is replaced, left out or repeated, as a seeded generator chooses.

Whatever arrives, nothing is raised, and the editor is answered as before once the program has told
everything anew.
"""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shapetrace.transport.handshake import (
    HandshakeError,
    hello_message,
    read_answer,
    read_challenge,
    read_connect,
    read_hello,
    read_proof,
)
from shapetrace.transport.messages import (
    Bye,
    Cancel,
    Challenge,
    Connect,
    Finish,
    Hello,
    ProcessStatus,
    Refusal,
    Wake,
    Watch,
    Welcome,
    read_from_server,
    write,
)
from shapetrace.transport.proof import PROTOCOL
from tests.python.unit.server import test_bad_rows, test_watched
from tests.python.unit.server.test_bad_rows import PROGRAM, WRONG, Editor
from tests.python.unit.transport import test_captures
from tests.python.unit.transport.peers import PROCESS
from tests.support.recorder import PRELUDE
from tests.support.rows import recorded, rows_of

TIMES = 2_000

NONCE = "a1" * 32
STATUS = ProcessStatus("recording", "", "2.13.0", 2, 30, 1, 0)
VALUES = list(WRONG.values())


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("random_messages") / "program.py"
    path.write_text(PRELUDE + PROGRAM, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def messages(path: Path) -> list[dict[str, Any]]:
    """Everything that a process may say, as it arrives."""
    rows = rows_of(recorded(path))
    others = [write(each) for each in (test_captures.NEWS, test_watched.NEWS, STATUS, Bye("end"))]
    sent = [*rows, test_bad_rows.stop_in(path, rows), *others]
    found: list[dict[str, Any]] = json.loads(json.dumps(sent))
    return found


def mutated(value: Any, chance: random.Random) -> Any:
    """A value of which one part, somewhere in it, is another."""
    if not isinstance(value, dict | list) or not value:
        return chance.choice(VALUES)
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = chance.choice(keys)
    changed: Any = value.copy()
    way = chance.random()
    if way < 0.7:
        changed[key] = mutated(value[key], chance)
    elif way < 0.85:
        changed[key] = chance.choice(VALUES)
    elif way < 0.95 or not isinstance(changed, list):
        del changed[key]
    else:
        changed.insert(key, value[key])
    return changed


def in_all_ways(message: dict[str, Any], do: Callable[[dict[str, Any]], object]) -> None:
    """Do something with a message that is wrong in some place or other, very often."""
    chance = random.Random(15)
    for _ in range(TIMES):
        wrong = message
        for _ in range(chance.randint(1, 3)):
            wrong = mutated(wrong, chance) if wrong else message
        do(wrong)


@pytest.mark.parametrize(
    "kind",
    [pytest.param("rows", marks=pytest.mark.slow), "captures", "watches", "stop", "status", "bye"],
)
def test_no_message_of_an_agent_spoils_an_answer(
    kind: str, path: Path, messages: list[dict[str, Any]], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    calm = Editor(path)
    calm.tell(messages)
    expected = calm.answers(), calm.told_of_values()
    assert expected[0]["hints"].count("«") > 2
    (message, *_) = [each for each in messages if each["type"] == kind]
    editor = Editor(path)
    editor.tell(messages)
    in_all_ways(message, lambda wrong: editor.tell([wrong]))
    editor.answers()
    editor.told_of_values()
    editor.begin()
    editor.tell(messages)
    assert (editor.answers(), editor.told_of_values()) == expected


@pytest.mark.parametrize(
    "command",
    [Wake(), Cancel(3), Watch(("video", "mask")), Finish()],
    ids=lambda it: type(it).__name__,
)
def test_a_command_is_the_one_or_is_refused(command: Any) -> None:
    def read(wrong: dict[str, Any]) -> None:
        said, refused = read_from_server(wrong)
        assert said is None or isinstance(said, type(command))
        assert said is not None or refused

    in_all_ways(write(command), read)


@pytest.mark.parametrize(
    ("message", "read"),
    [
        (write(Connect("c2a7", NONCE, PROTOCOL)), read_connect),
        (write(Challenge(NONCE, NONCE, PROTOCOL)), read_challenge),
        (hello_message(Hello("c2a7", PROCESS), NONCE), read_hello),
        (hello_message(Hello("c2a7", PROCESS), NONCE), read_proof),
        (write(Welcome()), read_answer),
        (write(Refusal("why")), read_answer),
    ],
)
def test_first_words_are_right_or_refused(
    message: dict[str, Any], read: Callable[[dict[str, Any]], object]
) -> None:
    refused = 0

    def try_to_read(wrong: dict[str, Any]) -> None:
        nonlocal refused
        try:
            read(wrong)
        except HandshakeError as error:
            refused += bool(str(error))

    in_all_ways(message, try_to_read)
    assert refused


def test_a_status_that_is_wrong_in_part_is_told_as_far_as_it_is_right() -> None:
    told: list[Any] = []
    editor = test_bad_rows.Editor(Path("/nowhere.py"), told.append)
    editor.tell([write(STATUS)])
    editor.tell([{**write(STATUS), "state": "complete", "passes": "3", "calls": -1, "rank": True}])
    last = told[-1]
    assert (last.state, last.passes, last.calls, last.rank) == ("complete", 2, 30, 0)
    assert last.torch == "2.13.0"


def test_messages_that_are_of_no_type_are_refused(caplog: pytest.LogCaptureFixture) -> None:
    editor = test_bad_rows.Editor(Path("/nowhere.py"))
    editor.tell([{"type": "later"}, {"type": ["rows"]}, {"type": "wake"}, {"type": "hello"}])
    for said in (
        "refused: no message has the type 'later'",
        "refused: no message has the type ['rows']",
        "refused: no message has the type 'wake'",
        "refused: a message of type hello: session is missing",
    ):
        assert said in caplog.text
