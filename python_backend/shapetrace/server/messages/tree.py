"""The trace tree: processes, the calls that they made, captured values and watched variables."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from shapetrace.server.messages.declarations import (
    Empty,
    NonEmptyStr,
    NonNegativeInt,
    Request,
    ServerNotification,
)
from shapetrace.server.messages.document_places import DocumentPosition, Place

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
"""The kind of a node of the trace tree.

A ``fold`` is several ops in a row that a library made. Below ``captures`` are the paths that were
asked for, below a path the names of the values that it found, and below a name each value. Below
``watches`` are the watched variables, and below a variable its changes.
"""


@dataclass(frozen=True, slots=True)
class TreeQuestion:
    """Asks for some of the nodes below a node."""

    parent: NonEmptyStr | None
    """The id of the node; None asks for the outermost nodes."""
    filter: str
    """Only nodes with this text in them are wanted, and those above and below them."""
    offset: NonNegativeInt
    limit: NonNegativeInt


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many numbers lie where between the lowest and the highest."""

    low: str
    high: str
    heights: tuple[int, ...]
    """One for each of the equal parts of the range; 100 for the part with the most numbers."""


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A node of the trace tree."""

    id: str
    key: str
    """Identifies the node in every run of a program, so that it is recognized in the next one."""
    kind: NodeKind
    label: str
    description: str = ""
    has_children: bool = False
    is_expanded: bool = False
    """Whether the node is shown expanded at first."""
    is_pinned: bool = False
    is_failed: bool = False
    histogram: Histogram | None = None


@dataclass(frozen=True, slots=True)
class TreePage:
    """Some of the nodes below a node."""

    nodes: tuple[TreeNode, ...]
    has_more: bool


@dataclass(frozen=True, slots=True)
class TreePathQuestion(DocumentPosition):
    """Asks which node was made at a place."""

    near: NonEmptyStr | None
    """Where several nodes were made there, the one closest to this node is meant."""
    filter: str


@dataclass(frozen=True, slots=True)
class TreeStep:
    """A node on a path, and its position among the nodes below the one before."""

    id: str
    position: int


@dataclass(frozen=True, slots=True)
class TreePath:
    """The nodes from the outermost one to the one that was asked for; None where there is none."""

    path: tuple[TreeStep, ...] | None


@dataclass(frozen=True, slots=True)
class NodeReference:
    """A node of the trace tree by its id."""

    node: NonEmptyStr


@dataclass(frozen=True, slots=True)
class Story:
    """The tooltip of a node."""

    markdown: str


@dataclass(frozen=True, slots=True)
class Placed:
    """The source of a node's call; None where it is unknown, or no longer in the document."""

    place: Place | None


TREE: Final = Request("shapetrace/tree", TreeQuestion, TreePage)
TREE_PATH: Final = Request("shapetrace/treePath", TreePathQuestion, TreePath)
STORY: Final = Request("shapetrace/story", NodeReference, Story)
PLACE: Final = Request("shapetrace/place", NodeReference, Placed)

TRACE_CHANGED: Final = ServerNotification("shapetrace/traceChanged", Empty)
"""Sent when the trace tree has changed since it was last asked for."""
