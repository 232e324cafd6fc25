"""Captured values in the trace tree: what was asked for, what it was called, and each value.

Captured values
├─ layers.*.attn.forward.scores     24 values of 12 names
│  └─ layers.0.attn.forward.scores  ×2  f32[2,4,9,9]  -1.2 … 3.4  mean 0.1  ▁▃▇▅▂
│     └─ iteration 1                f32[2,4,9,9]  -1.1 … 3.4  mean 0.1  ▁▃▇▅▂
└─ forward.mask                     nothing has this path; near it: forward.masks

Of several processes all are in one: the values of ranks stand below the same name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from shapetrace.server.features.captured_text import (
    histogram_of,
    iteration_text,
    name_row,
    name_story,
    value_row,
    value_story,
)
from shapetrace.server.features.requested_tree import RequestedTree
from shapetrace.server.messages.tree import Histogram, TreeNode
from shapetrace.server.processes import Process
from shapetrace.server.requested import KeptName, Requested
from shapetrace.transport.requested import CapturedValue
from shapetrace.views.captured import number_text
from shapetrace.views.histograms import Histogram as Bars
from shapetrace.views.styled import printable
from shapetrace.views.summary import counted
from shapetrace.views.tooltips import escaped

ROOT: Final = "captured"


@dataclass(frozen=True, slots=True)
class Named:
    """All values of one name, of all processes."""

    path: str
    name: str
    model: str


Kept: TypeAlias = tuple[Process, KeptName[CapturedValue]]
Names: TypeAlias = dict[Named, list[Kept]]


class CapturedTree(RequestedTree[Named, Names]):
    """Answers what is below which node of captured values."""

    ROOT = ROOT
    KIND = "captures"
    REQUEST_KIND = "capturePath"
    LABEL = "Captured values"
    ITEM = "value"

    def path_of(self, node: str) -> str | None:
        """What was asked for that a node shows the values of."""
        thing, _ = self._parsed(node)
        return thing.path if isinstance(thing, Named) else thing

    def name_of(self, node: str) -> tuple[Process, str] | None:
        """What the values of a node are called, or the first of them; a process that has them."""
        thing, _ = self._parsed(node)
        path = thing.path if isinstance(thing, Named) else thing
        names = {} if path is None else self._found().get(path, {})
        named = thing if isinstance(thing, Named) else next(iter(names), None)
        return (names[named][0][0], named.name) if named in names else None

    def story(self, node: str) -> str:
        """What is shown over a node, as Markdown."""
        own, kept = self._kept_of(node)
        if not kept:
            path = self.path_of(node)
            return "" if path is None else escaped(self._state(path))
        about = kept[0][1].about
        values = _values(kept)
        for process, value in values:
            if own and own == _value_id(process, value):
                return value_story(about.name, value, process.label)
        return name_story(about, [value for _, value in values], _total(kept))

    # What there is

    def _found(self, text: str = "") -> dict[str, Names]:
        """All that was asked for or is to be, and what was captured for it.

        With a text only what has it: a path with all of its names, or some of the names.
        """
        found: dict[str, Names] = {path: {} for path in self.wanted}
        for process in self._processes():
            for path in process.captured.requests:
                found.setdefault(path, {})
            for kept in process.captured.names.values():
                about = kept.about
                if kept.total:
                    named = Named(about.request, about.name, about.model)
                    names = found.setdefault(about.request, {})
                    names.setdefault(named, []).append((process, kept))
        if not text:
            return found
        shown: dict[str, Names] = {}
        for path, names in found.items():
            is_meant = text in path.lower()
            own = {it: kept for it, kept in names.items() if is_meant or text in it.name.lower()}
            if is_meant or own:
                shown[path] = own
        return shown

    def _total(self, came: Names) -> int:
        return sum(map(_total, came.values()))

    def _processes(self) -> list[Process]:
        return self._store.shown_processes()

    def _of(self, process: Process) -> Requested[CapturedValue]:
        return process.captured

    # Nodes

    def _below(self, thing: str | Named, found: dict[str, Names]) -> Iterator[TreeNode]:
        if isinstance(thing, Named):
            return self._value_nodes(thing, found.get(thing.path, {}).get(thing, []))
        names = found.get(thing, {})
        exact = _exact(names)
        if exact is None:
            return (self._name_node(named, names) for named in names)
        return self._value_nodes(exact, names[exact])

    def _kept_of(self, node: str) -> tuple[str, list[Kept]]:
        """The values that a node is above or one of, and which one it is."""
        thing, own = self._parsed(node)
        if isinstance(thing, Named):
            return own, self._found().get(thing.path, {}).get(thing, [])
        names = {} if thing is None else self._found().get(thing, {})
        exact = _exact(names)
        return own, [] if exact is None else names[exact]

    def _row(self, came: Names) -> tuple[str, Histogram | None]:
        exact = _exact(came)
        if exact is not None:
            return _row(came[exact])
        return f"{counted(self._total(came), 'value')} of {counted(len(came), 'name')}", None

    def _name_node(self, named: Named, names: Names) -> TreeNode:
        is_told_apart = sum(each.name == named.name for each in names) > 1
        title = f"{named.name} ({named.model})" if is_told_apart else named.name
        description, histogram = _row(names[named])
        return TreeNode(
            id=self._id(named),
            key=f"{ROOT}/{named.path}/{named.model}/{named.name}",
            kind="captureName",
            label=printable(title),
            description=description,
            has_children=True,
            histogram=histogram,
        )

    def _value_nodes(self, named: Named, kept: Sequence[Kept]) -> Iterator[TreeNode]:
        values = _values(kept)
        is_told = len({process.number for process, _ in values}) > 1
        above = f"{ROOT}/{named.path}/{named.model}/{named.name}"
        seen: Counter[tuple[int, str, int]] = Counter()
        for process, value in values:
            moment = (process.number, value.mode, value.iteration)
            seen[moment] += 1
            again = f" ({seen[moment]})" if seen[moment] > 1 else ""
            where = process.label if is_told or process.rank is not None else ""
            own = where or "0"
            yield TreeNode(
                id=f"{self._id(named)}/{_value_id(process, value)}",
                key=f"{above}/{own}.{value.ordinal}",
                kind="capture",
                label=f"{iteration_text(value)}{again}",
                description=value_row(value, where),
                histogram=_picture(histogram_of([value])),
            )


def _exact(names: Names) -> Named | None:
    """The only name, where it is the path itself."""
    first = next(iter(names), None)
    return first if first is not None and len(names) == 1 and first.path == first.name else None


def _total(kept: Sequence[Kept]) -> int:
    return sum(each.total for _, each in kept)


def _values(kept: Iterable[Kept]) -> list[tuple[Process, CapturedValue]]:
    """The values of one name in the order of their iterations, those of evaluations behind."""
    values = [(process, value) for process, each in kept for value in each]
    return sorted(
        values,
        key=lambda it: (it[1].mode == "eval", it[1].iteration, it[0].number, it[1].ordinal),
    )


def _value_id(process: Process, value: CapturedValue) -> str:
    return f"{process.number}.{value.ordinal}"


def _row(kept: Sequence[Kept]) -> tuple[str, Histogram | None]:
    values = [value for _, value in _values(kept)]
    return name_row(values, _total(kept)), _picture(histogram_of(values))


def _picture(bars: Bars | None) -> Histogram | None:
    """What the editor makes a picture of."""
    if bars is None:
        return None
    largest = max(bars.bins)
    heights = tuple(max(round(100 * count / largest), int(count > 0)) for count in bars.bins)
    return Histogram(number_text(bars.low), number_text(bars.high), heights)
