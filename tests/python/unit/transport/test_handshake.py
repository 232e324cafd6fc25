from __future__ import annotations

import contextlib
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapetrace.transport.framing import LONGEST_BEFORE_PROOF, decode, encode
from shapetrace.transport.handshake import (
    HandshakeError,
    hello_message,
    read_answer,
    read_challenge,
    read_connect,
    read_hello,
    read_proof,
    this_process,
)
from shapetrace.transport.messages import (
    Challenge,
    Connect,
    Hello,
    ProcessInfo,
    Refusal,
    Welcome,
    write,
)
from shapetrace.transport.proof import PROTOCOL
from tests.python.unit.transport.peers import PROCESS, PROCESS_OBJECT

texts = st.text(max_size=50)
short = st.text(min_size=1, max_size=200)
numbers = st.integers(0, 2**32 - 1)
hellos = st.builds(
    Hello,
    session=short,
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

NONCE = "a1" * 32
PROOF = "0f" * 32
HELLO = Hello("c2a7", PROCESS)
nonces = st.binary(min_size=32, max_size=32).map(bytes.hex)


def passed_on(message: dict[str, Any]) -> dict[str, Any]:
    return decode(encode(message)[4:])


@given(short, nonces)
def test_a_first_frame_arrives_as_it_was(session: str, nonce: str) -> None:
    connect = Connect(session, nonce, PROTOCOL)
    assert read_connect(passed_on(write(connect))) == connect


@given(nonces, nonces)
def test_a_challenge_arrives_as_it_was(nonce: str, proof: str) -> None:
    challenge = Challenge(nonce, proof, PROTOCOL)
    assert read_challenge(passed_on(write(challenge))) == challenge


@given(hellos, nonces)
def test_a_hello_arrives_as_it_was(hello: Hello, proof: str) -> None:
    message = passed_on(hello_message(hello, proof))
    assert read_hello(message) == hello
    assert read_proof(message) == proof


def test_the_frames_as_they_are_sent() -> None:
    assert write(Connect("c2a7", NONCE, PROTOCOL)) == {
        "type": "connect",
        "protocol": 5,
        "session": "c2a7",
        "nonce": NONCE,
    }
    assert write(Challenge(NONCE, PROOF, PROTOCOL)) == {
        "type": "challenge",
        "protocol": 5,
        "nonce": NONCE,
        "proof": PROOF,
    }
    assert hello_message(HELLO, PROOF) == {
        "type": "hello",
        "proof": PROOF,
        "session": "c2a7",
        "process": PROCESS_OBJECT,
    }
    assert write(Welcome()) == {"type": "welcome"}


@given(hellos, junk, st.data())
def test_a_hello_with_anything_in_it_is_right_or_refused(
    hello: Hello, value: Any, data: st.DataObject
) -> None:
    message = hello_message(hello, PROOF)
    place = message if data.draw(st.booleans()) else message["process"]
    key = data.draw(st.sampled_from(sorted(place)))
    place[key] = value
    with contextlib.suppress(HandshakeError):
        read = read_hello(message)
        assert read_hello(passed_on(hello_message(read, read_proof(message)))) == read


@given(
    st.dictionaries(texts, junk, max_size=4),
    st.sampled_from(["connect", "challenge", "hello", "rows"]),
    st.booleans(),
)
def test_anything_is_no_first_word(message: dict[str, Any], kind: str, is_ours: bool) -> None:
    message = {**message, "type": kind} | ({"protocol": PROTOCOL} if is_ours else {})
    for read in (read_connect, read_challenge, read_hello, read_proof):
        with contextlib.suppress(HandshakeError):
            assert isinstance(read(message), Refusal)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("type", "rows", "the first frame does not ask to connect"),
        ("type", "hello", "the first frame does not ask to connect"),
        ("protocol", True, "protocol should be a whole number, not true or false"),
        ("protocol", 1, "speaks protocol 1, the language server 5"),
        ("session", None, "session should be text, not null"),
        ("session", "", "session is empty or too long"),
        ("session", "x" * 201, "session is empty or too long"),
        ("nonce", "", "nonce is not 64 hexadecimal digits"),
        ("nonce", "g" * 64, "nonce is not 64 hexadecimal digits"),
        ("nonce", "\n" * 64, "nonce is not 64 hexadecimal digits"),
        ("nonce", ["0"] * 64, "nonce should be text, not a list"),
    ],
)
def test_what_is_wrong_with_a_first_frame_is_said(key: str, value: object, said: str) -> None:
    message = write(Connect("c2a7", NONCE, PROTOCOL))
    message[key] = value
    with pytest.raises(HandshakeError, match=said):
        read_connect(message)


def test_an_agent_of_protocol_1_is_told_that_it_is_of_another_version() -> None:
    with pytest.raises(HandshakeError, match="of different versions of Shapetrace"):
        read_connect({"type": "hello", "protocol": 1, "token": "x", "session": "c2a7"})


@pytest.mark.parametrize(
    ("where", "key", "value", "said"),
    [
        (None, "type", "rows", "the second frame is no hello"),
        (None, "session", None, "session should be text, not null"),
        (None, "process", [], "process should be an object, not a list"),
        ("process", "pid", 0, "pid is no number that it could be"),
        ("process", "pid", "../../12", "pid should be a whole number, not text"),
        ("process", "pid", 12.0, "pid should be a whole number, not a decimal number"),
        ("process", "argv", ["a", 1], "a row of argv: it should be text, not a whole number"),
        ("process", "rank", -1, "rank is no number that it could be"),
        ("process", "executable", None, "executable should be text, not null"),
    ],
)
def test_what_is_wrong_is_said(where: str | None, key: str, value: object, said: str) -> None:
    message = hello_message(HELLO, PROOF)
    (message if where is None else message[where])[key] = value
    with pytest.raises(HandshakeError, match=said):
        read_hello(message)


@pytest.mark.parametrize("key", ["session", "process"])
def test_what_is_missing_is_said(key: str) -> None:
    message = hello_message(HELLO, PROOF)
    del message[key]
    with pytest.raises(HandshakeError, match=f"{key} is missing"):
        read_hello(message)


def test_what_a_newer_agent_adds_is_passed_over() -> None:
    message = hello_message(HELLO, PROOF)
    message["later"] = message["process"]["later"] = 1
    assert read_hello(message) == HELLO


@pytest.mark.parametrize("answer", [Welcome(), Refusal("because")])
def test_an_answer_arrives_as_it_was(answer: Welcome | Refusal) -> None:
    assert read_answer(passed_on(write(answer))) == answer


def test_a_refusal_can_come_in_place_of_the_challenge() -> None:
    assert read_challenge(write(Refusal("because"))) == Refusal("because")


@given(st.dictionaries(texts, junk, max_size=4), st.sampled_from(["welcome", "refused", "rows"]))
def test_an_answer_with_anything_in_it_is_right_or_no_answer(
    message: dict[str, Any], kind: str
) -> None:
    with contextlib.suppress(HandshakeError):
        assert isinstance(read_answer({**message, "type": kind}), Welcome | Refusal)


def test_a_server_of_another_version_is_as_good_as_a_refusal() -> None:
    message = {**write(Challenge(NONCE, PROOF, PROTOCOL)), "protocol": PROTOCOL + 1}
    assert isinstance(read_challenge(message), Refusal)


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
    hello = Hello("\U0001f600" * 200, this_process(argv))
    assert len(encode(hello_message(hello, PROOF))) < LONGEST_BEFORE_PROOF
    assert read_hello(passed_on(hello_message(hello, PROOF))) == hello


def test_a_command_line_that_is_cut_says_so() -> None:
    assert this_process(["train.py", "x" * 5000, "more"]).argv == (
        "train.py",
        "x" * 1991 + "…",
        "…",
    )
    assert this_process([str(number) for number in range(200)]).argv[99:] == ("99", "…")


@pytest.mark.parametrize(
    ("read", "said"),
    [
        (read_connect, Connect("c2a7", NONCE, PROTOCOL)),
        (read_challenge, Challenge(NONCE, PROOF, PROTOCOL)),
    ],
    ids=["connect", "challenge"],
)
def test_first_words_without_a_protocol_are_refused(read: Any, said: Any) -> None:
    message = write(said)
    del message["protocol"]
    with pytest.raises(HandshakeError, match="protocol is missing"):
        read(message)
