"""From dataclasses to TypeScript, and whether the file in the extension is up to date."""

import sys
from dataclasses import dataclass
from types import NoneType
from typing import Annotated, Any, Literal, TypeAlias

import pytest

from scripts.generate_protocol import TARGET, blocks, protocol
from shapetrace.server.messages.declarations import (
    ClientNotification,
    Empty,
    NonEmptyStr,
    Request,
    ServerNotification,
    Unread,
)

Color: TypeAlias = Literal["red", "green"]
"""What a thing looks like."""


@dataclass(frozen=True, slots=True)
class Thing:
    """A thing, or ``None``."""

    first_name: str
    color: Color
    sizes: tuple[int, ...] = ()
    """Each size; this line and the next ones are so long together that one line of the file cannot
    hold them."""
    parts: tuple[tuple[float, float], ...] | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """Asks for a thing."""

    text: NonEmptyStr
    near: NonEmptyStr | None
    """Another thing."""
    limit: int | None = None
    direction: Literal[1, -1] = 1


@dataclass(frozen=True, slots=True)
class LongQuestion(Question):
    """Asks for much.

    And for more.
    """

    opaque: Annotated[Any, Unread()] = None
    thing: Annotated[Any, Unread(Thing)] = None


ASK = Request("test/ask", Question, Thing)
NOTE = ClientNotification("test/note", LongQuestion)

TELL: ServerNotification[Empty] = ServerNotification("test/tell", Empty)
"""Sent now and then."""

END = Request("test/end", Empty, NoneType)

EXPECTED = """\
/** Asks for a thing. */
export interface Question {
  readonly text: string;
  /** Another thing. */
  readonly near: string | null;
  readonly limit?: number | null;
  readonly direction: 1 | -1;
}

export const COLORS = ["red", "green"] as const;

/** What a thing looks like. */
export type Color = (typeof COLORS)[number];

/** A thing, or `null`. */
export interface Thing {
  readonly firstName: string;
  readonly color: Color;
  /**
   * Each size; this line and the next ones are so long together that one line of the file cannot
   * hold them.
   */
  readonly sizes: readonly number[];
  readonly parts: readonly (readonly [number, number])[] | null;
}

export const ASK: Request<Question, Thing> = {
  method: "test/ask",
};

/**
 * Asks for much.
 *
 * And for more.
 */
export interface LongQuestion extends Question {
  readonly opaque?: unknown;
  readonly thing?: Thing;
}

export const NOTE: ClientNotification<LongQuestion> = {
  method: "test/note",
};

/** The parameters of a message that has none. */
export type Empty = Record<string, never>;

/** Sent now and then. */
export const TELL: ServerNotification<Empty> = {
  method: "test/tell",
};

export const END: Request<Empty, null> = {
  method: "test/end",
};
"""


def test_dataclasses_become_interfaces() -> None:
    assert "\n".join(blocks([sys.modules[__name__]], [])) == EXPECTED


def test_what_only_messages_of_others_carry_comes_first() -> None:
    first, *_ = blocks([sys.modules[__name__]], [Empty])
    assert "type Empty" in first


def test_a_type_without_a_counterpart_is_refused() -> None:
    @dataclass
    class Odd:
        values: set[int]

    with pytest.raises(TypeError, match=r"set\[int\] has no counterpart"):
        blocks([], [Odd])


def test_two_types_of_one_name_are_refused() -> None:
    other: type = dataclass(type("Thing", (), {"__annotations__": {}, "__module__": __name__}))
    with pytest.raises(ValueError, match="two types of the name Thing"):
        blocks([], [Empty, Thing, other])


def test_the_file_is_up_to_date() -> None:
    assert TARGET.read_text("utf-8") == protocol(), "run `npm run generate`"
