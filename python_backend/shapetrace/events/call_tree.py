"""The nesting of a trace: module calls inside each other, and the ops that ran in each.

Events refer to what they ran in by id; a view wants to go down from the outermost calls. Nothing
here recurses, as programs may nest modules more deeply than Python lets functions nest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from shapetrace.events.model import ModuleCall, Op, Trace

Event: TypeAlias = ModuleCall | Op


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A module call with what ran in it, or an op with the kernels that it ran."""

    event: Event
    children: tuple[Node, ...] = field(default=(), repr=False)
    """In the order of their first appearance."""


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """All module calls and ops of a trace, each exactly once."""

    roots: tuple[Node, ...]
    """The calls outside modules, in the order of first appearance."""


def build(trace: Trace) -> Tree:
    """Nest the module calls and ops of a trace."""
    events: list[Event] = sorted([*trace.modules, *trace.ops], key=_id_of)
    parents = _parents(events)
    children: dict[int, list[int]] = {}
    for position, parent in enumerate(parents):
        if parent is not None:
            children.setdefault(parent, []).append(position)
    order = _outermost_first(parents, children)
    nodes: dict[int, Node] = {}
    for position in reversed(order):
        inside = tuple(nodes[child] for child in children.get(position, ()))
        nodes[position] = Node(events[position], inside)
    return Tree(tuple(nodes[root] for root, parent in enumerate(parents) if parent is None))


def walk(nodes: Iterable[Node]) -> Iterator[tuple[int, Node]]:
    """Each node with its depth, parents before children, in the order of first appearance."""
    pending = [(0, node) for node in reversed(tuple(nodes))]
    while pending:
        depth, node = pending.pop()
        yield depth, node
        pending.extend((depth + 1, child) for child in reversed(node.children))


def _id_of(event: Event) -> int:
    return event.id


def _parents(events: list[Event]) -> list[int | None]:
    """The position of the event that each event ran in."""
    modules: dict[int, int] = {}
    ops: dict[int, int] = {}
    for position, event in enumerate(events):
        (ops if isinstance(event, Op) else modules).setdefault(event.id, position)

    def parent_of(event: Event) -> int | None:
        if isinstance(event, ModuleCall):
            return _position(modules, event.parent)
        caller = _position(ops, event.parent)
        return _position(modules, event.module) if caller is None else caller

    return [parent_of(event) for event in events]


def _position(positions: dict[int, int], identity: int | None) -> int | None:
    return None if identity is None else positions.get(identity)


def _outermost_first(parents: list[int | None], children: dict[int, list[int]]) -> list[int]:
    """All positions, parents before their children.

    Events of a damaged file may run in each other. The first of such a ring loses its parent here,
    so that every event is still shown once.
    """
    order: list[int] = []
    reached = [False] * len(parents)
    pending = [position for position, parent in enumerate(parents) if parent is None][::-1]
    candidates = iter(range(len(parents)))
    while True:
        while pending:
            position = pending.pop()
            reached[position] = True
            order.append(position)
            pending.extend(reversed(children.get(position, ())))
        first = next((position for position in candidates if not reached[position]), None)
        if first is None:
            return order
        parent = parents[first]
        if parent is not None:
            children[parent].remove(first)
            parents[first] = None
        pending.append(first)
