"""The messages between the extension and the server that are not of the language server protocol.

``extension/src/protocol.ts`` is the other side; both are tested with the same samples in
``tests/contract/editor``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any, Final, Literal, TypeAlias

from shapetrace.server.messages.codec import (
    MessageError,
    any_text_in,
    number_in,
    object_of,
    optional_number_in,
    optional_text_in,
    text_in,
)

VERSION: Final = 1
"""Of these messages. Extension and server come in one package: it is only for those who look."""

OPEN_SESSION: Final = "shapetrace/openSession"
CLOSE_SESSION: Final = "shapetrace/closeSession"
CLEAR: Final = "shapetrace/clear"
EXPORT: Final = "shapetrace/export"
WAKE: Final = "shapetrace/wake"
CANCEL_EVALUATION: Final = "shapetrace/cancelEvaluation"
SHOW_HINTS: Final = "shapetrace/showHints"
STATUS: Final = "shapetrace/status"
TREE: Final = "shapetrace/tree"
TREE_PATH: Final = "shapetrace/treePath"
STORY: Final = "shapetrace/story"
PLACE: Final = "shapetrace/place"
CALLS: Final = "shapetrace/calls"
PIN: Final = "shapetrace/pin"
STEP_CALL: Final = "shapetrace/stepCall"
FOCUS: Final = "shapetrace/focus"
INLINE_VALUES: Final = "shapetrace/inlineValues"
TRACE_CHANGED: Final = "shapetrace/traceChanged"
PIN_CHANGED: Final = "shapetrace/pinChanged"

PIN_COMMAND: Final = "shapetrace.pinCall"
UNPIN_COMMAND: Final = "shapetrace.unpinCall"
PREVIOUS_COMMAND: Final = "shapetrace.previousCall"
NEXT_COMMAND: Final = "shapetrace.nextCall"
"""Commands of the extension that code lenses run, with a ``Position`` of theirs."""

EXPORT_FORMATS = ("json", "markdown", "tree", "listing")

ExportFormat: TypeAlias = Literal["json", "markdown", "tree", "listing"]


NodeKind: TypeAlias = Literal[
    "process",
    "module",
    "op",
    "kernel",
    "fold",
    "captures",
    "capturePath",
    "captureName",
    "capture",
    "watches",
    "watch",
    "change",
]


@dataclass(frozen=True, slots=True)
class OpenSession:
    """Expect processes of a debug session."""

    session: str
    name: str
    mode: str
    token: str | None = None
    port: int | None = None
    """Token and port are given where the session was open before the server was restarted."""


@dataclass(frozen=True, slots=True)
class OpenedSession:
    """Where the processes of a session are to connect, and with which token."""

    port: int
    token: str


@dataclass(frozen=True, slots=True)
class EvaluationReference:
    """What is evaluated at a stop, by the number that the extension has given it."""

    session: str
    number: int


@dataclass(frozen=True, slots=True)
class SessionReference:
    """A debug session: one that is over, or one that is to be woken."""

    session: str


@dataclass(frozen=True, slots=True)
class Export:
    """Write a trace to a file."""

    path: str
    format: ExportFormat
    session: str | None = None
    """None for the newest that recorded anything."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written. Where nothing had been recorded, no file was."""

    path: str
    ops: int
    modules: int


@dataclass(frozen=True, slots=True)
class ProcessesTold:
    """How many processes were told."""

    processes: int


@dataclass(frozen=True, slots=True)
class ShowHints:
    """Whether hints are to be seen in this window."""

    visible: bool


@dataclass(frozen=True, slots=True)
class Status:
    """Where a process of a session stands."""

    session: str
    process: int | None
    state: str
    message: str = ""
    python: str | None = None
    torch: str | None = None
    passes: int = 0
    calls: int = 0
    dropped: int = 0
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class TreeQuestion:
    """What is below a node of the trace tree, or the outermost nodes."""

    parent: str | None
    filter: str
    """A text that nodes must have in them, or above or below them; empty for all nodes."""
    offset: int
    limit: int


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many numbers lie where between two others."""

    low: str
    high: str
    heights: tuple[int, ...]
    """Of equal parts of the range; 100 for the part with most."""


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A process, module call or op, ops in a row that a library made, or captured values."""

    id: str
    key: str
    """What it is called in every run of a program, so that it is known again in the next one."""
    kind: NodeKind
    label: str
    description: str = ""
    has_children: bool = False
    is_expanded: bool = False
    """Whether it is there for what is in it."""
    is_pinned: bool = False
    is_failed: bool = False
    histogram: Histogram | None = None


@dataclass(frozen=True, slots=True)
class TreePage:
    """Some of the nodes below one."""

    nodes: tuple[TreeNode, ...]
    has_more: bool


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a document, counted from 0 as the editor does."""

    uri: str
    line: int
    character: int = 0


@dataclass(frozen=True, slots=True)
class TreePathQuestion:
    """Which node was made at a place; where there are several, the one next to another node."""

    position: Position
    near: str | None
    filter: str


@dataclass(frozen=True, slots=True)
class TreeStep:
    """A node on a path, and its number below the node before."""

    id: str
    position: int


@dataclass(frozen=True, slots=True)
class TreePath:
    """From the outermost node to the one that was asked for; None if there is none."""

    path: tuple[TreeStep, ...] | None


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the trace tree; None for none."""

    node: str | None


@dataclass(frozen=True, slots=True)
class Story:
    """All that is told of a node."""

    markdown: str


@dataclass(frozen=True, slots=True)
class Place:
    """A range of a document."""

    uri: str
    start: tuple[int, int]
    end: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a node's call stands in the source; None where that is not known or no more there."""

    place: Place | None


@dataclass(frozen=True, slots=True)
class Pin:
    """A call that is pinned, or may be."""

    node: str
    label: str
    description: str
    is_waiting: bool = False
    """Whether the newest run has not come to it yet."""


@dataclass(frozen=True, slots=True)
class Pinned:
    """What is pinned now."""

    pin: Pin | None
    lost: str | None = None
    """What was pinned, where that is not in the newest run."""


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of a line, and which of them is shown."""

    calls: tuple[Pin, ...]
    current: int | None


@dataclass(frozen=True, slots=True)
class StepCall:
    """Pin the next call of a line, or the one before."""

    position: Position
    direction: int


@dataclass(frozen=True, slots=True)
class Lines:
    """Some lines of a document, counted from 0, the last one included."""

    uri: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class InlineValue:
    """What is shown at the end of a line while the program stands still."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class InlineValues:
    """What is shown on the lines that were asked about."""

    values: tuple[InlineValue, ...]


@dataclass(frozen=True, slots=True)
class Initialization:
    """What the extension says at the start."""

    storage: str | None
    """A folder to keep what was recorded in."""
    settings: Any
    """As ``read_options`` takes them."""
    captures: tuple[str, ...]
    """The paths of values that are to be captured."""
    watches: tuple[str, ...]
    """The variables that are to be watched."""


def read_open_session(params: object) -> OpenSession:
    """The parameters of ``shapetrace/openSession``."""
    given = object_of(params)
    return OpenSession(
        session=text_in(given, "session"),
        name=text_in(given, "name"),
        mode=text_in(given, "mode"),
        token=optional_text_in(given, "token"),
        port=optional_number_in(given, "port"),
    )


def read_session(params: object) -> SessionReference:
    """The parameters of ``shapetrace/closeSession`` and ``shapetrace/wake``."""
    return SessionReference(text_in(object_of(params), "session"))


def read_evaluation(params: object) -> EvaluationReference:
    """The parameters of ``shapetrace/cancelEvaluation``."""
    given = object_of(params)
    return EvaluationReference(text_in(given, "session"), number_in(given, "number"))


def read_export(params: object) -> Export:
    """The parameters of ``shapetrace/export``."""
    given = object_of(params)
    form = given.get("format")
    if form not in EXPORT_FORMATS:
        raise MessageError(f"format must be one of {', '.join(EXPORT_FORMATS)}")
    return Export(text_in(given, "path"), form, optional_text_in(given, "session"))


def read_show_hints(params: object) -> ShowHints:
    """The parameters of ``shapetrace/showHints``."""
    visible = object_of(params).get("visible")
    if not isinstance(visible, bool):
        raise MessageError("visible must be true or false")
    return ShowHints(visible)


def read_tree(params: object) -> TreeQuestion:
    """The parameters of ``shapetrace/tree``."""
    given = object_of(params)
    return TreeQuestion(
        parent=optional_text_in(given, "parent"),
        filter=any_text_in(given, "filter"),
        offset=number_in(given, "offset"),
        limit=number_in(given, "limit"),
    )


def read_tree_path(params: object) -> TreePathQuestion:
    """The parameters of ``shapetrace/treePath``."""
    given = object_of(params)
    near = optional_text_in(given, "near")
    return TreePathQuestion(read_position(params), near, any_text_in(given, "filter"))


def read_position(params: object) -> Position:
    """The parameters of ``shapetrace/calls``, and a part of others."""
    given = object_of(params)
    return Position(text_in(given, "uri"), number_in(given, "line"), number_in(given, "character"))


def read_node(params: object) -> Node:
    """The parameters of ``shapetrace/place``, ``shapetrace/story`` and ``shapetrace/pin``."""
    return Node(optional_text_in(object_of(params), "node"))


def read_step_call(params: object) -> StepCall:
    """The parameters of ``shapetrace/stepCall``."""
    direction = object_of(params).get("direction")
    if direction not in (-1, 1):
        raise MessageError("direction must be 1 or -1")
    return StepCall(read_position(params), direction)


def read_lines(params: object) -> Lines:
    """The parameters of ``shapetrace/inlineValues``."""
    given = object_of(params)
    return Lines(text_in(given, "uri"), number_in(given, "first"), number_in(given, "last"))


def read_initialization(options: object) -> Initialization:
    """The ``initializationOptions``; a client that is not our extension may send none."""
    given = options if isinstance(options, Mapping) else {}
    storage = given.get("storage")
    return Initialization(
        storage=storage if isinstance(storage, str) and storage else None,
        settings=given.get("settings"),
        captures=_texts(given.get("captures")),
        watches=_texts(given.get("watches")),
    )


def _texts(values: object) -> tuple[str, ...]:
    return tuple(it for it in (values if isinstance(values, list) else ()) if isinstance(it, str))


def to_json(message: object) -> dict[str, Any]:
    """A message as JSON has it."""
    assert is_dataclass(message)
    return {_key(each.name): _value(getattr(message, each.name)) for each in fields(message)}


def _value(value: object) -> Any:
    if isinstance(value, tuple):
        return [_value(item) for item in value]
    return to_json(value) if is_dataclass(value) else value


@cache
def _key(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
