"""What captures and watches in the trace tree have in common.

A branch has a node for each request (a path, a variable), and below it what came of that. Nodes
have numbers in place of names, which may contain anything.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sized
from itertools import islice
from typing import Any, ClassVar, Generic, TypeVar

from shapetrace.server.messages.tree import Histogram, NodeKind, TreeNode
from shapetrace.server.processes import Process
from shapetrace.server.requested import Requested
from shapetrace.server.store import TraceStore
from shapetrace.views.styled import printable
from shapetrace.views.summary import counted

_LATER = "from the next run on"
_WAITING = "nothing yet"

Part = TypeVar("Part", bound=Hashable)
"""What a node is about that is neither about a request nor about one item of what came of it."""
Came = TypeVar("Came", bound=Sized)
"""What came of a request, in all processes."""


class RequestedTree(ABC, Generic[Part, Came]):
    """One branch of the trace tree."""

    ROOT: ClassVar[str]
    KIND: ClassVar[NodeKind]
    REQUEST_KIND: ClassVar[NodeKind]
    LABEL: ClassVar[str]
    ITEM: ClassVar[str]
    """What is counted."""

    def __init__(self, store: TraceStore) -> None:
        self._store = store
        self.wanted: tuple[str, ...] = ()
        """What is requested from the next session on."""
        self._numbers: dict[str | Part, int] = {}
        self._things: list[str | Part] = []

    @classmethod
    def is_node(cls, node: str | None) -> bool:
        """Whether a node of the trace tree is one of these."""
        return node is not None and node.startswith(cls.ROOT)

    def root(self, text: str) -> TreeNode | None:
        """The node above all others; None where there is nothing to show."""
        found = self._found(text)
        if not found:
            return None
        number = sum(map(self._total, found.values()))
        return TreeNode(
            id=self.ROOT,
            key=self.ROOT,
            kind=self.KIND,
            label=self.LABEL,
            description=counted(number, self.ITEM) if number else "",
            has_children=True,
            is_expanded=True,
        )

    def page(self, parent: str, text: str, offset: int, limit: int) -> tuple[list[TreeNode], bool]:
        """Some of what is below a node, and whether there is more."""
        found = self._found(text)
        thing, own = self._parsed(parent)
        nodes: Iterable[TreeNode] = ()
        if parent == self.ROOT:
            nodes = (self._request_node(*each) for each in found.items())
        elif thing is not None and not own:
            nodes = self._below(thing, found)
        shown = list(islice(nodes, offset, offset + limit + 1))
        return shown[:limit], len(shown) > limit

    @abstractmethod
    def _found(self, text: str = "") -> dict[str, Came]:
        """All that was requested or is to be, and what came of it; with a text, what has that."""

    @abstractmethod
    def _total(self, came: Came) -> int:
        """How many items there are."""

    @abstractmethod
    def _row(self, came: Came) -> tuple[str, Histogram | None]:
        """What is said beside a request of what came of it."""

    @abstractmethod
    def _below(self, thing: str | Part, found: dict[str, Came]) -> Iterator[TreeNode]:
        """The nodes below one that is about something."""

    @abstractmethod
    def _processes(self) -> list[Process]:
        """The processes that are shown."""

    @abstractmethod
    def _of(self, process: Process) -> Requested[Any]:
        """What came of all requests in a process."""

    def _asked(self, request: str) -> list[Process]:
        """The processes that were asked for it."""
        return [each for each in self._processes() if request in self._of(each).requests]

    def _problem(self, request: str) -> str | None:
        """Why nothing came of a request, where that is known."""
        told = (self._of(each).problems.get(request) for each in self._asked(request))
        return next(filter(None, told), None)

    def _request_node(self, request: str, came: Came) -> TreeNode:
        description, histogram = self._row(came) if came else (self._state(request), None)
        return TreeNode(
            id=self._id(request),
            key=f"{self.ROOT}/{request}",
            kind=self.REQUEST_KIND,
            label=printable(request),
            description=description,
            has_children=bool(came),
            is_failed=not came and self._problem(request) is not None,
            histogram=histogram,
        )

    def _state(self, request: str) -> str:
        """What is said of a request that nothing came of."""
        if not self._asked(request):
            return _LATER
        problem = self._problem(request)
        return _WAITING if problem is None else printable(problem)

    def _id(self, thing: str | Part) -> str:
        if thing not in self._numbers:
            self._numbers[thing] = len(self._things)
            self._things.append(thing)
        return f"{self.ROOT}/{self._numbers[thing]}"

    def _parsed(self, node: str) -> tuple[str | Part | None, str]:
        """What a node is about, and which item of that it is; empty where it is none."""
        number, _, own = node.removeprefix(f"{self.ROOT}/").partition("/")
        known = number.isdecimal() and int(number) < len(self._things)
        return (self._things[int(number)] if known else None), own
