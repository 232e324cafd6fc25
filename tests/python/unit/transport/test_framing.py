from __future__ import annotations

import contextlib
import json
import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapetrace.transport.framing import (
    LONGEST,
    LONGEST_BEFORE_PROOF,
    Decoder,
    FrameError,
    decode,
    encode,
    frame_of,
)

# Bytes that are no text come as U+DC80 to U+DCFF in the name of a file.
characters = st.characters(exclude_categories=["Cs"]) | st.characters(
    min_codepoint=0xDC80, max_codepoint=0xDCFF, categories=["Cs"]
)
texts = st.text(characters, max_size=20)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(-1e300, 1e300) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
messages = st.dictionaries(texts, json_values, max_size=5).flatmap(
    lambda rest: texts.map(lambda kind: {**rest, "type": kind})
)


def frame(payload: bytes) -> bytes:
    return struct.pack(">I", len(payload)) + payload


def taken(decoder: Decoder) -> list[bytes]:
    return list(iter(decoder.take, None))


def in_pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in pairwise(places)]


def test_a_frame_is_its_length_and_json() -> None:
    assert encode({"type": "wake"}) == b'\x00\x00\x00\x0f{"type":"wake"}'
    assert frame_of(b'{"type":"wake"}') == encode({"type": "wake"})


@pytest.mark.slow
@given(st.lists(messages, max_size=4), st.lists(st.integers(0, 10_000), max_size=8))
def test_messages_arrive_however_they_are_cut(sent: list[dict], cuts: list[int]) -> None:
    decoder = Decoder(LONGEST)
    received: list[dict] = []
    for piece in in_pieces(b"".join(map(encode, sent)), cuts):
        decoder.feed(piece)
        received += map(decode, taken(decoder))
    assert received == sent
    assert decoder.waiting == 0


@pytest.mark.slow
@given(messages)
def test_others_read_the_same(message: dict) -> None:
    assert json.loads(encode(message)[4:]) == message


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=5), st.integers(0, 100))
def test_garbage_is_frames_or_an_error(data: bytes, cuts: list[int], longest: int) -> None:
    decoder = Decoder(longest)
    with contextlib.suppress(FrameError):
        for piece in in_pieces(data, cuts):
            decoder.feed(piece)
            for payload in taken(decoder):
                assert len(payload) <= longest
                assert isinstance(decode(payload)["type"], str)


@given(messages, st.data())
def test_damaged_frames_are_messages_or_an_error(message: dict, data: st.DataObject) -> None:
    damaged = bytearray(encode(message))
    place = data.draw(st.integers(0, len(damaged) - 1))
    damaged[place] ^= data.draw(st.integers(1, 255))
    decoder = Decoder()
    decoder.feed(damaged)
    with contextlib.suppress(FrameError):
        for payload in taken(decoder):
            assert isinstance(decode(payload)["type"], str)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"null",
        b"[]",
        b'"hello"',
        b"{}",
        b'{"type":null}',
        b'{"type":1}',
        b'{"type":"a"',
        b'{"type":"a"}{}',
        b'{"type":"a","x":NaN}',
        b'{"type":"a","x":-Infinity}',
        b'{"type":"a","x":1e999}',
        b'{"type":"\xff"}',
        b'\xef\xbb\xbf{"type":"a"}',
        '{"type":"a"}'.encode("utf-16"),
        b'{"type":"a","x":' + b"9" * 5000 + b"}",
        b'{"type":"a","x":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    ],
)
def test_what_is_no_message_is_refused(payload: bytes) -> None:
    with pytest.raises(FrameError):
        decode(payload)


def test_a_long_frame_is_refused_by_its_header_alone() -> None:
    decoder = Decoder()
    assert decoder.longest == LONGEST_BEFORE_PROOF
    decoder.feed(struct.pack(">I", LONGEST_BEFORE_PROOF + 1))
    with pytest.raises(FrameError, match="65537 bytes is too long; 65536 are allowed"):
        decoder.take()


def test_after_an_error_nothing_is_kept_or_taken() -> None:
    decoder = Decoder(10)
    decoder.feed(b"GET / HTTP/1.1\r\n")
    for _ in range(2):
        with pytest.raises(FrameError):
            decoder.take()
    decoder.feed(encode({"type": "wake"}))
    assert decoder.waiting == 0
    with pytest.raises(FrameError):
        decoder.take()


def test_the_limit_can_be_raised_between_frames() -> None:
    small, large = {"type": "a"}, {"type": "b", "text": "x" * 100}
    decoder = Decoder(20)
    decoder.feed(encode(small) + encode(large))
    assert decode(decoder.take() or b"") == small
    decoder.longest = 200
    assert decode(decoder.take() or b"") == large


def test_a_frame_of_exactly_the_limit_is_taken() -> None:
    payload = encode({"type": "a", "text": "x"})[4:]
    decoder = Decoder(len(payload))
    decoder.feed(frame(payload))
    assert decoder.take() == payload
    assert encode(decode(payload), len(payload)) == frame(payload)
    with pytest.raises(FrameError, match="too long"):
        encode(decode(payload), len(payload) - 1)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1, 2}, b"bytes", 1j])
def test_what_has_no_json_is_not_sent(value: object) -> None:
    with pytest.raises(FrameError, match="has no JSON"):
        encode({"type": "a", "value": value})


def test_a_message_that_contains_itself_is_not_sent() -> None:
    message: dict[str, object] = {"type": "a"}
    message["self"] = message
    with pytest.raises(FrameError):
        encode(message)


def test_what_the_program_does_to_json_is_not_felt(monkeypatch: pytest.MonkeyPatch) -> None:
    def replaced(*arguments: object, **keywords: object) -> object:
        raise AssertionError("the program's own json is used")

    for coder, names in (
        (json.JSONEncoder, ("default", "encode", "iterencode")),
        (json.JSONDecoder, ("decode", "raw_decode")),
    ):
        for name in names:
            monkeypatch.setattr(coder, name, replaced)
    for name in ("dumps", "loads"):
        monkeypatch.setattr(json, name, replaced)
    message = {"type": "a", "x": [1, 2.5, None, "ü"]}
    assert decode(encode(message)[4:]) == message
