"""The calls below one call, by the place that made them, with keys to find them in another run.

A group has several variants where shapes differed. The recorder keeps these apart; how many there
are depends on how long the program ran.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from typing import Final

from shapetrace.comparing.addresses import without_addresses
from shapetrace.comparing.comparison import Event
from shapetrace.comparing.shared_places import SharedPlaces
from shapetrace.events.call_tree import Node
from shapetrace.events.model import Container, DimensionRange, ModuleCall, Op, Tensor, Value

_DIGITS: Final = re.compile(r"\d+")

_ENOUGH: Final = 16
"""Calls inside a module that it is known by."""


class CallGroup:
    """A place below one call, and the calls that it made there of one function or module."""

    __slots__ = ("bounds", "event", "name", "nodes", "parent")

    def __init__(self, node: Node, parent: ModuleCall | None, name: str) -> None:
        self.nodes: list[Node] = [node]
        self.event = node.event
        """The first of them."""
        self.bounds: list[float] = []
        """For each, the number of what was called next beside it."""
        self.parent = parent
        self.name = name
        """The path of a module from its parent; empty for ops."""

    @property
    def line(self) -> Hashable:
        """The called function or module and its place, whichever way led there."""
        event = self.event
        called = event.name if isinstance(event, Op) else event.path
        return (called, event.file, event.line, event.column, event.end_line, event.end_column)

    def take(self, other: CallGroup) -> None:
        """Have the calls of another group of the same line, too."""
        self.nodes += other.nodes
        self.bounds += other.bounds

    @property
    def calls(self) -> int:
        """How many calls these are."""
        return sum(node.event.count or 1 for node in self.nodes)


def call_groups_of(node: Node | None, roots: Sequence[Node], bound: float) -> list[CallGroup]:
    """The groups below a node, or outermost, in the order of their first calls."""
    event = None if node is None else node.event
    parent = event if isinstance(event, ModuleCall) else None
    prefix = f"{parent.path}." if parent is not None and parent.path else ""
    children = roots if node is None else node.children
    found: dict[Hashable, CallGroup] = {}
    last = len(children) - 1
    for position, child in enumerate(children):
        inside = child.event
        end = children[position + 1].event.id if position < last else bound
        if isinstance(inside, Op):
            name, thread = inside.name, thread_kind(inside)
        else:
            name, thread = inside.path, None
        key: tuple[Hashable, ...] = (
            *(name, inside.stack or (inside.file, inside.line, inside.column), thread),
        )
        if isinstance(inside, Op) and not inside.direct:
            # A library's calls all have the place of the program that called the library.
            key = (*key, without_addresses(inside.label))
        group = found.get(key)
        if group is None:
            is_module = isinstance(inside, ModuleCall)
            relative = name.removeprefix(prefix) if is_module else ""
            group = found[key] = CallGroup(child, parent, relative)
        else:
            group.nodes.append(child)
        group.bounds.append(end)
    return list(found.values())


class Keys:
    """Numbers for what groups are known by; one table for both runs, so that they compare."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def exact(self, groups: Iterable[CallGroup], places: SharedPlaces) -> list[int]:
        """Keys that are equal for one function or module called at one place."""
        return [self._number(_exact(group, places)) for group in groups]

    def valued(self, groups: Iterable[CallGroup], exact: Iterable[int]) -> list[int]:
        """Exact keys with the values: they say which of two equal calls in a row is missing."""
        return [
            self._number((key, _values(group.event))) if group.event.fingerprints else key
            for group, key in zip(groups, exact, strict=True)
        ]

    def similar(self, groups: Iterable[CallGroup]) -> list[int]:
        """Keys that are equal for one function with equal arguments, or one module and class."""
        return [self._number(_similar(group)) for group in groups]

    def named(self, groups: Iterable[CallGroup]) -> list[int]:
        """Keys that are equal for one function, or one module name."""
        return [self._number(_named(group)) for group in groups]

    def kinds(self, groups: Iterable[CallGroup], side: str) -> list[list[int]]:
        """For modules, what they are whatever their name; no two ops have the same."""
        levels: list[list[int]] = [[], []]
        for position, group in enumerate(groups):
            for level, key in zip(levels, _kinds(group, (side, position)), strict=True):
                level.append(self._number(key))
        return levels

    def structures(self, groups: Iterable[CallGroup], side: str) -> list[int]:
        """For modules, what is inside them, whatever their name and class; no two ops the same."""
        return [
            self._number(_structure(group, (side, position)))
            for position, group in enumerate(groups)
        ]

    def lasting(self, groups: Sequence[CallGroup], places: SharedPlaces) -> list[int]:
        """Keys that stay the same when a call is made at another time."""
        pairs = zip(groups, self.exact(groups, places), self.named(groups), strict=True)
        return [name if isinstance(group.event, ModuleCall) else key for group, key, name in pairs]

    def roles(
        self, groups: Iterable[CallGroup], places: SharedPlaces, side: str
    ) -> list[list[int]]:
        """For ops, what they make where, whatever they are; no two modules have the same."""
        levels: list[list[int]] = [[], []]
        for position, group in enumerate(groups):
            for level, key in zip(levels, _roles(group, places, (side, position)), strict=True):
                level.append(self._number(key))
        return levels

    def _number(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))


def thread_kind(op: Op) -> str | None:
    """The thread without its number, which depends on what else ran."""
    return None if op.thread is None else _DIGITS.sub("", op.thread)


def sizes(values: Sequence[Value]) -> Hashable:
    """The shapes of some values, as far as they are single sizes."""
    return tuple(_sizes(value) for value in values)


def _sizes(value: Value) -> Hashable:
    if isinstance(value, Tensor):
        return None if value.shape is None else tuple(map(_size, value.shape))
    if isinstance(value, Container):
        return (value.kind, *(_sizes(item) for item in value.items))
    return ""


def _size(size: int | str | DimensionRange) -> Hashable:
    return (size.low, size.high) if isinstance(size, DimensionRange) else size


def _values(event: Event) -> Hashable:
    outputs = event.fingerprints[0].outputs
    return tuple((output.samples, output.root_mean_square, output.checksum) for output in outputs)


def _exact(group: CallGroup, places: SharedPlaces) -> Hashable:
    event = group.event
    place, is_exact = places.key(event)
    if isinstance(event, ModuleCall):
        return ("module", group.name, event.class_name, place)
    called = (event.level, event.name, thread_kind(event), place)
    if is_exact:
        return called if event.direct else (*called, without_addresses(event.label))
    return (*called, without_addresses(event.label), sizes(event.outputs))


def _similar(group: CallGroup) -> Hashable:
    event = group.event
    if isinstance(event, ModuleCall):
        return ("module", group.name, event.class_name)
    return (event.level, event.name, without_addresses(event.label), event.function)


def _named(group: CallGroup) -> Hashable:
    event = group.event
    if isinstance(event, ModuleCall):
        return ("module", group.name)
    return (event.level, event.name)


def _kinds(group: CallGroup, unique: Hashable) -> tuple[Hashable, Hashable]:
    event = group.event
    if isinstance(event, ModuleCall):
        kind = ("kind", event.class_name, without_addresses(event.detail), event.parameters)
        return ((*kind, event.line, event.column, len(group.nodes[0].children)), kind)
    return (unique, unique)


def _structure(group: CallGroup, unique: Hashable) -> Hashable:
    event = group.event
    if not isinstance(event, ModuleCall):
        return unique
    inside = [child.event for child in group.nodes[0].children]
    names = (
        child.path.rpartition(".")[2] if isinstance(child, ModuleCall) else child.name
        for child in inside[:_ENOUGH]
    )
    return ("structure", without_addresses(event.detail), event.parameters, len(inside), *names)


def _roles(group: CallGroup, places: SharedPlaces, unique: Hashable) -> tuple[Hashable, Hashable]:
    event = group.event
    if isinstance(event, ModuleCall):
        return (unique, unique)
    role = ("role", event.level, event.function, sizes(event.outputs))
    return ((*role, places.key(event)[0]), role)


def describe(event: Event) -> Hashable:
    """The properties that keep the variants of a group apart, without dtypes and devices."""
    label = without_addresses(event.label) if isinstance(event, Op) else ""
    return (label, sizes(event.inputs), sizes(event.outputs))
