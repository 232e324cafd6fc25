"""The messages between the extension and the server about captured values.

As those of ``protocol``, with ``extension/src/captureProtocol.ts`` on the other side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from shapetrace.server.messages.codec import any_text_in, object_of, optional_text_in, texts_in
from shapetrace.server.messages.tree import Position, read_position

WANT_CAPTURES: Final = "shapetrace/wantCaptures"
CAPTURE_PATHS: Final = "shapetrace/capturePaths"
CHECK_PATH: Final = "shapetrace/checkPath"
CAPTURE_PROBLEM: Final = "shapetrace/captureProblem"


@dataclass(frozen=True, slots=True)
class WantedCaptures:
    """What is to be captured from the next session on."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CapturePathsQuestion:
    """By which paths something is captured: a node of the trace tree, or what is at a place."""

    node: str | None
    position: Position | None


@dataclass(frozen=True, slots=True)
class CapturePath:
    """One way to capture it."""

    path: str
    description: str


@dataclass(frozen=True, slots=True)
class CapturePaths:
    """All ways to capture something, the likeliest first."""

    name: str
    """What it is called in the source; empty where there is nothing to capture."""
    paths: tuple[CapturePath, ...]


@dataclass(frozen=True, slots=True)
class PathToCheck:
    """Something that somebody is typing."""

    path: str


@dataclass(frozen=True, slots=True)
class CheckedPath:
    """What is wrong with it, with the place; None where it is a path."""

    problem: str | None


@dataclass(frozen=True, slots=True)
class CaptureProblem:
    """Why a path brings nothing."""

    session: str
    path: str
    message: str


def read_wanted(params: object) -> WantedCaptures:
    """The parameters of ``shapetrace/wantCaptures``."""
    return WantedCaptures(texts_in(object_of(params), "paths"))


def read_capture_paths(params: object) -> CapturePathsQuestion:
    """The parameters of ``shapetrace/capturePaths``."""
    given = object_of(params)
    node = optional_text_in(given, "node")
    return CapturePathsQuestion(node, None if node is not None else read_position(given))


def read_path_to_check(params: object) -> PathToCheck:
    """The parameters of ``shapetrace/checkPath``."""
    return PathToCheck(any_text_in(object_of(params), "path"))
