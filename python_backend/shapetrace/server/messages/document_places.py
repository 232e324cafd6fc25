"""Places in documents. Lines and characters are counted from 0, as the editor does."""

from dataclasses import dataclass

from shapetrace.server.messages.declarations import NonEmptyStr, NonNegativeInt


@dataclass(frozen=True, slots=True)
class DocumentPosition:
    """A place in a document, with line and character counted from 0."""

    uri: NonEmptyStr
    line: NonNegativeInt
    character: NonNegativeInt


@dataclass(frozen=True, slots=True)
class Place:
    """A range of a document, from a line and character to another, both counted from 0."""

    uri: str
    start: tuple[int, int]
    end: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Lines:
    """Some lines of a document, counted from 0, the last one included."""

    uri: NonEmptyStr
    first: NonNegativeInt
    last: NonNegativeInt
