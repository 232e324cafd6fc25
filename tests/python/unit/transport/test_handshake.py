from __future__ import annotations

import contextlib
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapetrace.transport.framing import LONGEST_BEFORE_HELLO, decode, encode
from shapetrace.transport.handshake import (
    PROTOCOL,
    HandshakeError,
    Hello,
    ProcessInfo,
    Refused,
    Welcome,
    answer_message,
    hello_message,
    read_answer,
    read_hello,
    same_token,
    this_process,
)
from tests.python.unit.transport.peers import HELLO_MESSAGE, PROCESS

texts = st.text(max_size=50)
short = st.text(min_size=1, max_size=200)
numbers = st.integers(0, 2**32 - 1)
hellos = st.builds(
    Hello,
    session=short,
    token=short,
    process=st.builds(
        ProcessInfo,
        pid=st.integers(1, 2**32 - 1),
        parent=numbers,
        python=short,
        executable=texts,
        argv=st.lists(texts, max_size=4).map(tuple),
        rank=st.none() | numbers,
        world_size=st.none() | numbers,
        implementation=short,
    ),
)
junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)

HELLO = Hello("c2a7", "secret", PROCESS)


def passed_on(message: dict[str, Any]) -> dict[str, Any]:
    return decode(encode(message)[4:])


@given(hellos)
def test_a_hello_arrives_as_it_was(hello: Hello) -> None:
    assert read_hello(passed_on(hello_message(hello))) == hello


def test_the_hello_as_it_is_sent() -> None:
    assert hello_message(HELLO) == HELLO_MESSAGE


@given(hellos, junk, st.data())
def test_a_hello_with_anything_in_it_is_right_or_refused(
    hello: Hello, value: Any, data: st.DataObject
) -> None:
    message = hello_message(hello)
    place = message if data.draw(st.booleans()) else message["process"]
    key = data.draw(st.sampled_from(sorted(place)))
    place[key] = value
    with contextlib.suppress(HandshakeError):
        read = read_hello(message)
        assert read_hello(passed_on(hello_message(read))) == read


@given(st.dictionaries(texts, junk, max_size=4))
def test_anything_is_no_hello(message: dict[str, Any]) -> None:
    with pytest.raises(HandshakeError):
        read_hello(message)
    with pytest.raises(HandshakeError):
        read_hello({**message, "type": "hello"})
    with pytest.raises(HandshakeError):
        read_hello({**message, "type": "hello", "protocol": PROTOCOL})


@pytest.mark.parametrize(
    ("where", "key", "value", "said"),
    [
        (None, "type", "rows", "the first frame is no hello"),
        (None, "protocol", True, "protocol is missing or no number"),
        (None, "protocol", 2, "speaks protocol 2, the language server 1"),
        (None, "token", "", "token is empty or too long"),
        (None, "token", "x" * 201, "token is empty or too long"),
        (None, "session", None, "session is missing or no text"),
        (None, "process", [], "process is missing or no object"),
        ("process", "pid", 0, "pid is missing or no number that it could be"),
        ("process", "pid", "../../12", "pid is missing or no number that it could be"),
        ("process", "pid", 12.0, "pid is missing or no number that it could be"),
        ("process", "argv", ["a", 1], "argv is missing or no list of texts"),
        ("process", "rank", -1, "rank is missing or no number that it could be"),
        ("process", "executable", None, "executable is missing or no text"),
    ],
)
def test_what_is_wrong_is_said(where: str | None, key: str, value: object, said: str) -> None:
    message = hello_message(HELLO)
    (message if where is None else message[where])[key] = value
    with pytest.raises(HandshakeError, match=said):
        read_hello(message)


def test_what_a_newer_agent_adds_is_passed_over() -> None:
    message = hello_message(HELLO)
    message["later"] = message["process"]["later"] = 1
    assert read_hello(message) == HELLO


@pytest.mark.parametrize("answer", [Welcome(), Refused("because")])
def test_an_answer_arrives_as_it_was(answer: Welcome | Refused) -> None:
    assert read_answer(passed_on(answer_message(answer))) == answer


@given(st.dictionaries(texts, junk, max_size=4), st.sampled_from(["welcome", "refused", "rows"]))
def test_an_answer_with_anything_in_it_is_right_or_no_answer(
    message: dict[str, Any], kind: str
) -> None:
    with contextlib.suppress(HandshakeError):
        assert isinstance(read_answer({**message, "type": kind}), Welcome | Refused)


def test_a_server_of_another_version_is_as_good_as_a_refusal() -> None:
    answer = read_answer({"type": "welcome", "protocol": PROTOCOL + 1})
    assert isinstance(answer, Refused)


@given(texts, texts)
def test_tokens_are_the_same_when_they_are_equal(one: str, other: str) -> None:
    assert same_token(one, one)
    assert same_token(one, other) == (one == other)


def test_a_token_may_be_no_valid_text() -> None:
    assert same_token("\udc80", "\udc80")
    assert not same_token("\udc80", "?")


def test_no_token_is_shown_by_printing() -> None:
    assert "secret" not in repr(HELLO)


def test_this_process_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "8")
    process = this_process(["train.py", "--lr", "1"])
    assert process.argv == ("train.py", "--lr", "1")
    assert process.executable == sys.executable
    assert (process.rank, process.world_size) == (3, 8)
    assert process.python.startswith(f"{sys.version_info.major}.{sys.version_info.minor}.")


@pytest.mark.parametrize("text", ["", "-1", "three", "٣", "1" * 40])
def test_a_rank_that_is_no_number_is_none(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", text)
    assert this_process().rank is None


def test_a_process_without_a_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sys, "argv")
    assert this_process().argv == ()


@pytest.mark.parametrize(
    "argv",
    [
        ["x" * 10_000_000],
        ["x"] * 100_000,
        [""] * 100_000,
        ["\U0001f600" * 50_000],
        ["\udc80"] * 100_000,
        [object(), None, 3],
    ],
)
def test_any_hello_has_room_in_the_first_frame(
    argv: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "\U0001f600" * 100_000)
    hello = Hello("\U0001f600" * 200, "\U0001f600" * 200, this_process(argv))
    assert len(encode(hello_message(hello))) < LONGEST_BEFORE_HELLO
    assert read_hello(passed_on(hello_message(hello))) == hello


def test_a_command_line_that_is_cut_says_so() -> None:
    assert this_process(["train.py", "x" * 5000, "more"]).argv == (
        "train.py",
        "x" * 1991 + "…",
        "…",
    )
    assert this_process([str(number) for number in range(200)]).argv[99:] == ("99", "…")
