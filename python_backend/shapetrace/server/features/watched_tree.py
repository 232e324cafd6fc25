"""Watched variables in the trace tree: what is watched, and how it changed, in order.

Watched variables                   14 changes
├─ video            12 changes      u8[73,3,720,720] → f32[3,73,384,544]
│  ├─ data.py:40    u8[73,3,720,720]                          transform, call 7
│  ├─ data.py:45    u8[73,3,720,720] → f32[3,73,384,544]      transform, call 7
│  └─ …             1,234 more are not kept
└─ vidoe            nothing that was loaded assigns 'vidoe'; did you mean video?
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from typing import Final, TypeAlias

from shapetrace.server.messages.tree import TreeNode
from shapetrace.server.processes import Process
from shapetrace.server.ranges import SourceRange
from shapetrace.server.store import TraceStore
from shapetrace.server.watched import Timeline
from shapetrace.transport.watches import WatchedChange
from shapetrace.views.change_text import ARROW, change_text
from shapetrace.views.shapes import value_text
from shapetrace.views.styled import printable
from shapetrace.views.summary import counted
from shapetrace.views.tooltips import escaped

ROOT: Final = "watched"
_LABEL: Final = "Watched variables"
_LATER: Final = "from the next run on"
_WAITING: Final = "nothing yet"

Kept: TypeAlias = tuple[Process, Timeline]


class WatchedTree:
    """Answers what is below which node of watched variables."""

    def __init__(self, store: TraceStore) -> None:
        self._store = store
        self.wanted: tuple[str, ...] = ()
        """What is to be watched."""
        self._numbers: dict[str, int] = {}
        """For each name the number that nodes have in them."""
        self._names: list[str] = []

    @staticmethod
    def is_node(node: str | None) -> bool:
        """Whether a node of the trace tree is one of these."""
        return node is not None and node.startswith(ROOT)

    def root(self, text: str) -> TreeNode | None:
        """The node above all others; None where there is nothing to show."""
        found = self._found(text)
        if not found:
            return None
        number = sum(timeline.total for kept in found.values() for _, timeline in kept)
        return TreeNode(
            id=ROOT,
            key=ROOT,
            kind="watches",
            label=_LABEL,
            description=counted(number, "change") if number else "",
            has_children=True,
            is_expanded=True,
        )

    def page(self, parent: str, text: str, offset: int, limit: int) -> tuple[list[TreeNode], bool]:
        """Some of what is below a node, and whether there is more."""
        found = self._found(text)
        name = self.name_of(parent)
        if parent == ROOT:
            nodes: Iterator[TreeNode] = (self._name_node(*each) for each in found.items())
        elif name is not None:
            nodes = self._change_nodes(name, found.get(name, []))
        else:
            return [], False
        shown = list(islice(nodes, offset, offset + limit + 1))
        return shown[:limit], len(shown) > limit

    def name_of(self, node: str) -> str | None:
        """What is watched that a node is of."""
        number = node.removeprefix(f"{ROOT}/").partition("/")[0]
        known = number.isdecimal() and int(number) < len(self._names)
        return self._names[int(number)] if known else None

    def story(self, node: str) -> str:
        """What is shown over a node, as Markdown."""
        found = self._change_of(node)
        if found is None:
            name = self.name_of(node)
            return "" if name is None else escaped(self._state(name))
        process, change = found
        event = change.event
        lines = [f"**{escaped(event.name)}** {escaped(change_text(event))}"]
        for part in event.parts:
            before = "…" if part.before is None else value_text(part.before.value)
            after = "…" if part.after is None else value_text(part.after.value)
            lines.append(f"{escaped(event.name + part.path)}: {escaped(before + ARROW + after)}")
        where = f"{os.path.basename(event.file)}:{event.line}"
        told = self._where(process, change, is_told=True)
        lines.append(escaped(f"{where}, {told}"))
        return "  \n".join(lines)

    def place(self, node: str) -> tuple[Process, str, SourceRange] | None:
        """The file and line where a change was made, or the first of a name."""
        found = self._change_of(node)
        if found is None:
            name = self.name_of(node)
            kept = self._found().get(name, []) if name is not None else []
            first = ((process, each) for process, one in kept for each in one)
            found = next(first, None)
        if found is None:
            return None
        process, change = found
        line = change.event.line
        return process, change.event.file, SourceRange(line, 0, line, 0)

    # What there is

    def _found(self, text: str = "") -> dict[str, list[Kept]]:
        """All that is watched or was, and how it changed in each process."""
        found: dict[str, list[Kept]] = {name: [] for name in self.wanted}
        for process in self._store.watching_processes():
            for number, name in enumerate(process.watched.names):
                timeline = process.watched.timelines.get(number)
                if timeline is not None and timeline.total:
                    found.setdefault(name, []).append((process, timeline))
        if not text:
            return found
        return {name: kept for name, kept in found.items() if text in name.lower()}

    def _state(self, name: str) -> str:
        """What is said of a name that has brought nothing."""
        processes = [
            each for each in self._store.watching_processes() if name in each.watched.names
        ]
        if not processes:
            return _LATER
        problem = self._problem(name)
        return _WAITING if problem is None else printable(problem)

    def _problem(self, name: str) -> str | None:
        """Why no process has anything of a name, once that is known."""
        processes = [
            each for each in self._store.watching_processes() if name in each.watched.names
        ]
        if any(each.is_running for each in processes):
            return None
        return next((p for each in processes if (p := each.watched.problems.get(name))), None)

    # Nodes

    def _id(self, name: str) -> str:
        if name not in self._numbers:
            self._numbers[name] = len(self._names)
            self._names.append(name)
        return f"{ROOT}/{self._numbers[name]}"

    def _name_node(self, name: str, kept: list[Kept]) -> TreeNode:
        description = self._state(name)
        if kept:
            total = sum(timeline.total for _, timeline in kept)
            first, last = kept[0][1], kept[-1][1]
            begins = next(iter(first)).event
            ends = (last.latest or last.first)[-1].event
            before = value_text((begins.before or begins.after).value)
            after = value_text(ends.after.value)
            course = before if before == after else before + ARROW + after
            description = f"{counted(total, 'change')}  {printable(course)}"
        return TreeNode(
            id=self._id(name),
            key=f"{ROOT}/{name}",
            kind="watch",
            label=printable(name),
            description=description,
            has_children=bool(kept),
            is_failed=not kept and self._problem(name) is not None,
        )

    def _change_nodes(self, name: str, kept: list[Kept]) -> Iterator[TreeNode]:
        is_told = len(kept) > 1
        for process, timeline in kept:
            for change in timeline.first:
                yield self._change_node(name, process, change, is_told)
            if timeline.left_out > 0:
                yield TreeNode(
                    id=f"{self._id(name)}/{process.number}.left",
                    key=f"{ROOT}/{name}/{process.number}.left",
                    kind="change",
                    label="…",
                    description=f"{timeline.left_out:,} more are not kept",
                    has_children=False,
                )
            for change in timeline.latest:
                yield self._change_node(name, process, change, is_told)

    def _change_node(
        self, name: str, process: Process, change: WatchedChange, is_told: bool
    ) -> TreeNode:
        event = change.event
        where = self._where(process, change, is_told)
        own = process.label if is_told else "0"
        return TreeNode(
            id=f"{self._id(name)}/{process.number}.{change.ordinal}",
            key=f"{ROOT}/{name}/{own}.{change.ordinal}",
            kind="change",
            label=f"{os.path.basename(event.file)}:{event.line}",
            description="  ".join(filter(None, (change_text(event), where))),
            has_children=False,
        )

    @staticmethod
    def _where(process: Process, change: WatchedChange, is_told: bool) -> str:
        """In which call of what, and where several run, in which of these."""
        is_module = change.function == "<module>"
        parts = [] if is_module else [f"{printable(change.function)}, call {change.call}"]
        if change.event.thread is not None:
            parts.append(printable(change.event.thread))
        if is_told or process.rank is not None:
            parts.append(process.label)
        return ", ".join(parts)

    def _change_of(self, node: str) -> tuple[Process, WatchedChange] | None:
        name = self.name_of(node)
        own = node.removeprefix(f"{ROOT}/").partition("/")[2]
        number, _, ordinal = own.partition(".")
        if name is None or not (number.isdecimal() and ordinal.isdecimal()):
            return None
        process = self._store.process(int(number))
        for timeline in process.watched.timelines.values() if process is not None else ():
            if timeline.text == name and process is not None:
                for change in timeline:
                    if change.ordinal == int(ordinal):
                        return process, change
        return None
