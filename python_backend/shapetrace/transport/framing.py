"""Messages as frames: four bytes of length, most significant first, and that much JSON.

00 00 00 10  {"type":"wake"}
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any, NoReturn, TypeAlias

Message: TypeAlias = dict[str, Any]
"""A JSON object whose ``type`` says what it is."""

LONGEST_BEFORE_PROOF = 64 * 1024
"""Bytes of JSON in a frame from a peer that has not proved the token yet."""

LONGEST = 16 * 1024 * 1024
"""Bytes of JSON in any other frame."""

_HEADER = struct.Struct(">I")
HEADER_LENGTH = _HEADER.size


class FrameError(Exception):
    """A message that cannot be sent, or a received one that is no frame of ours."""


class _Encoder(json.JSONEncoder):
    """The C encoder, whatever the program may later do to the class it comes from."""

    default = json.JSONEncoder.default
    encode = json.JSONEncoder.encode
    iterencode = json.JSONEncoder.iterencode


class _Decoder(json.JSONDecoder):
    decode = json.JSONDecoder.decode
    raw_decode = json.JSONDecoder.raw_decode


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if number - number != 0.0:
        raise ValueError("a number is too large")
    return number


# ASCII is the faster one, and keeps file names that are not valid Unicode as they are. A message
# that contains itself ends in a RecursionError here as well, so looking for circles is wasted time.
_to_text = _Encoder(
    ensure_ascii=True, allow_nan=False, check_circular=False, separators=(",", ":")
).encode
_from_text = _Decoder(parse_constant=_refuse_constant, parse_float=_finite).decode


def encode(message: Mapping[str, object], longest: int = LONGEST) -> bytes:
    """The frame for a message."""
    try:
        payload = _to_text(message).encode("ascii")
    except (TypeError, ValueError, RecursionError, MemoryError) as error:
        raise FrameError(f"this message has no JSON: {error}") from None
    if len(payload) > longest:
        raise FrameError(f"a message of {len(payload)} bytes is too long; {longest} are allowed")
    return _HEADER.pack(len(payload)) + payload


def frame_of(payload: bytes) -> bytes:
    """The frame around a message's JSON."""
    return _HEADER.pack(len(payload)) + payload


def decode(payload: bytes) -> Message:
    """The message in the JSON of a frame."""
    try:
        message = _from_text(payload.decode("utf-8"))
    except RecursionError:
        raise FrameError("a frame is nested too deeply") from None
    except ValueError as error:
        raise FrameError(f"a frame does not hold JSON: {error}") from None
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise FrameError("a frame does not hold an object with a type")
    return message


class Decoder:
    """Takes bytes as they arrive and gives frames as they become whole.

    A length that is not allowed is an error as soon as it is known; what it announces is not
    waited for. After an error the place in the stream is lost, and every further take fails.
    """

    longest: int
    """How many bytes of JSON the next frame may have."""

    def __init__(self, longest: int = LONGEST_BEFORE_PROOF) -> None:
        self.longest = longest
        self._buffer = bytearray()
        self._broken: str | None = None

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Add what has arrived."""
        if self._broken is None:
            self._buffer += data

    def take(self) -> bytes | None:
        """The JSON of the next whole frame, undecoded; None until more has arrived."""
        if self._broken is not None:
            raise FrameError(self._broken)
        if len(self._buffer) < HEADER_LENGTH:
            return None
        (length,) = _HEADER.unpack_from(self._buffer)
        if length > self.longest:
            self._buffer = bytearray()
            self._broken = f"a frame of {length} bytes is too long; {self.longest} are allowed"
            raise FrameError(self._broken)
        end = HEADER_LENGTH + length
        if len(self._buffer) < end:
            return None
        with memoryview(self._buffer) as view:
            payload = bytes(view[HEADER_LENGTH:end])
        del self._buffer[:end]
        return payload

    @property
    def waiting(self) -> int:
        """How many bytes have arrived that are part of no frame taken yet."""
        return len(self._buffer)
