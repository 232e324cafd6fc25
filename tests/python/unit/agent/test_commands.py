"""What the agent does with commands of the server, and with what is none."""

from __future__ import annotations

from typing import Any

import pytest

from shapetrace.agent import in_place
from shapetrace.agent.agent import Agent
from shapetrace.transport.messages import Cancel, Watch, write
from shapetrace.transport.session_address import SessionAddress


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What was done."""
    found: list[object] = []
    monkeypatch.setattr(in_place, "cancel", found.append)
    monkeypatch.setattr(
        "shapetrace.agent.watches.Watches.watch", lambda _, names: found.append(names)
    )
    return found


@pytest.mark.parametrize(
    ("message", "expected"),
    [(write(Cancel(3)), 3), (write(Watch(("a", "b"))), ("a", "b")), (write(Watch(())), ())],
)
def test_a_command_is_obeyed(message: dict[str, Any], expected: object, done: list[object]) -> None:
    agent = Agent(SessionAddress("s", 1, "token"))
    agent._obey(message)
    assert done == [expected]
    assert agent._sender.trouble == ""


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({"type": "watch", "names": ["a", 3]}, "a row of names: it should be text"),
        ({"type": "watch"}, "a message of type watch: names is missing"),
        ({"type": "cancel", "evaluation": "3"}, "evaluation should be a whole number, not text"),
        ({"type": "later"}, "no message has the type 'later'"),
    ],
)
def test_a_command_that_is_wrong_is_left_undone(
    message: dict[str, Any], said: str, done: list[object]
) -> None:
    agent = Agent(SessionAddress("s", 1, "token"))
    agent._obey(message)
    assert done == []
    assert said in agent._sender.trouble
