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
from typing import Final, TypeAlias

from shapetrace.server.features.requested_tree import RequestedTree
from shapetrace.server.messages.tree import TreeNode
from shapetrace.server.processes import Process
from shapetrace.server.ranges import SourceRange
from shapetrace.server.requested import KeptName, Requested
from shapetrace.transport.requested import WatchedChange
from shapetrace.views.change_text import ARROW, change_text
from shapetrace.views.shapes import value_text
from shapetrace.views.styled import printable
from shapetrace.views.summary import counted
from shapetrace.views.tooltips import escaped

ROOT: Final = "watched"

Kept: TypeAlias = tuple[Process, KeptName[WatchedChange]]


class WatchedTree(RequestedTree[str, list[Kept]]):
    """Answers what is below which node of watched variables."""

    ROOT = ROOT
    KIND = "watches"
    REQUEST_KIND = "watch"
    LABEL = "Watched variables"
    ITEM = "change"

    def name_of(self, node: str) -> str | None:
        """What is watched that a node is of."""
        return self._parsed(node)[0]

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
        for process in self._processes():
            for kept in process.watched.names.values():
                if kept.total:
                    found.setdefault(kept.about.request, []).append((process, kept))
        if not text:
            return found
        return {name: came for name, came in found.items() if text in name.lower()}

    def _total(self, came: list[Kept]) -> int:
        return sum(timeline.total for _, timeline in came)

    def _processes(self) -> list[Process]:
        return self._store.watching_processes()

    def _of(self, process: Process) -> Requested[WatchedChange]:
        return process.watched

    def _problem(self, request: str) -> str | None:
        is_running = any(each.is_running for each in self._asked(request))
        return None if is_running else super()._problem(request)

    # Nodes

    def _below(self, thing: str, found: dict[str, list[Kept]]) -> Iterator[TreeNode]:
        return self._change_nodes(thing, found.get(thing, []))

    def _row(self, came: list[Kept]) -> tuple[str, None]:
        first, last = came[0][1], came[-1][1]
        begins = next(iter(first)).event
        ends = (last.latest or last.first)[-1].event
        before = value_text((begins.before or begins.after).value)
        after = value_text(ends.after.value)
        course = before if before == after else before + ARROW + after
        return f"{counted(self._total(came), 'change')}  {printable(course)}", None

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
        name, own = self._parsed(node)
        number, _, ordinal = own.partition(".")
        if name is None or not (number.isdecimal() and ordinal.isdecimal()):
            return None
        process = self._store.process(int(number))
        for kept in process.watched.names.values() if process is not None else ():
            if kept.about.request == name and process is not None:
                for change in kept:
                    if change.ordinal == int(ordinal):
                        return process, change
        return None
