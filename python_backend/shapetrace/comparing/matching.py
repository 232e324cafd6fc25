"""Which groups below one call of A are which below the same call of B."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from shapetrace.comparing.call_groups import CallGroup, Keys, call_groups_of, sizes
from shapetrace.comparing.comparison import Event
from shapetrace.comparing.sequences import align
from shapetrace.comparing.shared_places import SharedPlaces
from shapetrace.events.model import ModuleCall

Relation: TypeAlias = Literal["same", "moved", "renamed", "replaced"]

_MOST_WRAPPERS: Final = 16
"""How many modules around what both have are looked through, one inside the other."""


@dataclass(slots=True)
class CallPair:
    """A group of A, the group of B that it is, or the lack of either."""

    a: CallGroup | None
    b: CallGroup | None
    relation: Relation = "same"
    is_wrapper: bool = False
    """Whether the calls inside follow as rows."""


class Matcher:
    """Finds the groups of two runs that belong together."""

    def __init__(self, a: SharedPlaces, b: SharedPlaces) -> None:
        self._a = a
        self._b = b
        self._keys = Keys()

    def rows(
        self, a: Sequence[CallGroup], b: Sequence[CallGroup], wrappers: int = _MOST_WRAPPERS
    ) -> list[CallPair]:
        """All groups of both, in an order that both have, but for those that moved."""
        exact_a = self._keys.exact(a, self._a)
        exact_b = self._keys.exact(b, self._b)
        if exact_a == exact_b:
            return [CallPair(ours, theirs) for ours, theirs in zip(a, b, strict=True)]
        keys = self._keys
        levels_a = (keys.valued(a, exact_a), exact_a, keys.similar(a), keys.named(a))
        levels_b = (keys.valued(b, exact_b), exact_b, keys.similar(b), keys.named(b))
        rows = _in_order(a, b, align(levels_a, levels_b), "same")
        rows = _with_moved(rows, keys, self._a, self._b)
        rows = [row for gap in _gaps(rows) for row in self._within(gap, wrappers)]
        return _with_other_ways(rows)

    def _within(self, gap: list[CallPair], wrappers: int) -> list[CallPair]:
        """The rows between two that belong together, with more of them matched."""
        rows = gap
        for relation in ("renamed", "rebuilt", "wrapped", "replaced"):
            if len(rows) < 2:
                return rows
            parts = [self._part(part, relation, wrappers) for part in _gaps(rows)]
            rows = [row for part in parts for row in part]
        return rows

    def _part(self, rows: list[CallPair], step: str, wrappers: int) -> list[CallPair]:
        a = [row.a for row in rows if row.a is not None and row.b is None]
        b = [row.b for row in rows if row.b is not None and row.a is None]
        if not a or not b or len(a) + len(b) < len(rows):
            return rows
        if step == "renamed":
            kinds_a, kinds_b = self._keys.kinds(a, "a"), self._keys.kinds(b, "b")
            matches = align(kinds_a, kinds_b) or _only_modules(a, b, same_class=True)
            return _in_order(a, b, matches, "renamed") if matches else rows
        if step == "rebuilt":
            structures = self._keys.structures(a, "a"), self._keys.structures(b, "b")
            matches = align((structures[0],), (structures[1],))
            return _in_order(a, b, matches, "renamed") if matches else rows
        if step == "wrapped":
            return self._unwrapped(a, b, wrappers) or rows
        roles_a = self._keys.roles(a, self._a, "a")
        roles_b = self._keys.roles(b, self._b, "b")
        matches = align(roles_a, roles_b) or _only_modules(a, b, same_class=False)
        matches = matches or _only_ops(a, b)
        return _in_order(a, b, matches, "replaced") if matches else rows

    def _unwrapped(
        self, a: list[CallGroup], b: list[CallGroup], wrappers: int
    ) -> list[CallPair] | None:
        """The rows with a module opened that only one run has around these calls."""
        if not wrappers:
            return None
        for ours, theirs, is_a in ((a, b, True), (b, a, False)):
            for position, group in enumerate(ours):
                if not isinstance(group.event, ModuleCall):
                    continue
                inside = call_groups_of(group.nodes[0], (), group.bounds[0])
                if not self._is_around(inside, theirs):
                    continue
                opened = [*ours[:position], *inside, *ours[position + 1 :]]
                pair = (opened, theirs) if is_a else (theirs, opened)
                rows = self.rows(*pair, wrappers - 1)
                first = inside[0]
                at = next(
                    number for number, row in enumerate(rows) if (row.a if is_a else row.b) is first
                )
                wrapper = CallPair(group, None) if is_a else CallPair(None, group)
                wrapper.is_wrapper = True
                return [*rows[:at], wrapper, *rows[at:]]
        return None

    def _is_around(self, inside: Sequence[CallGroup], others: Sequence[CallGroup]) -> bool:
        """Return whether most of what is inside a module is what the other run has without it."""
        common = Counter(self._known(inside)) & Counter(self._known(others))
        return 2 * common.total() >= min(len(inside), len(others)) and common.total() > 0

    def _known(self, groups: Sequence[CallGroup]) -> list[int]:
        """Keys by which groups can be found again below another module."""
        kinds = self._keys.kinds(groups, "")[1]
        named = self._keys.named(groups)
        return [
            kind if isinstance(group.event, ModuleCall) else name
            for group, kind, name in zip(groups, kinds, named, strict=True)
        ]


def _in_order(
    a: Sequence[CallGroup],
    b: Sequence[CallGroup],
    matches: Sequence[tuple[int, int]],
    relation: Relation,
) -> list[CallPair]:
    rows: list[CallPair] = []
    done_a = done_b = 0
    for at_a, at_b in [*matches, (len(a), len(b))]:
        rows += [CallPair(group, None) for group in a[done_a:at_a]]
        rows += [CallPair(None, group) for group in b[done_b:at_b]]
        if at_a < len(a):
            rows.append(CallPair(a[at_a], b[at_b], relation))
        done_a, done_b = at_a + 1, at_b + 1
    return rows


def _with_moved(
    rows: list[CallPair], keys: Keys, places_a: SharedPlaces, places_b: SharedPlaces
) -> list[CallPair]:
    """The rows with what both have at the same place of their code, though at another time."""
    at_a = [number for number, row in enumerate(rows) if row.b is None]
    at_b = [number for number, row in enumerate(rows) if row.a is None]
    if not at_a or not at_b:
        return rows
    exact_a = keys.lasting([group for row in rows if row.b is None and (group := row.a)], places_a)
    exact_b = keys.lasting([group for row in rows if row.a is None and (group := row.b)], places_b)
    single_a = {key for key, count in Counter(exact_a).items() if count == 1}
    single_b = {key for key, count in Counter(exact_b).items() if count == 1}
    found_b = {key: at for key, at in zip(exact_b, at_b, strict=True) if key in single_b}
    gone: set[int] = set()
    for key, at in zip(exact_a, at_a, strict=True):
        if key in single_a and key in found_b:
            rows[at] = CallPair(rows[at].a, rows[found_b[key]].b, "moved")
            gone.add(found_b[key])
    return [row for number, row in enumerate(rows) if number not in gone]


def _with_other_ways(rows: list[CallPair]) -> list[CallPair]:
    """The rows with a lone group put to another of the same line, where the other run has more.

    A line may be reached in several ways, of which either run may take another.
    """
    matched: dict[object, CallPair] = {}
    for row in rows:
        if row.a is not None and row.b is not None:
            matched.setdefault((True, row.a.line), row)
            matched.setdefault((False, row.b.line), row)
    kept: list[CallPair] = []
    for row in rows:
        group = row.a or row.b
        is_a = row.b is None
        if group is not None and (row.a is None or row.b is None) and not row.is_wrapper:
            other = matched.get((is_a, group.line))
            if other is not None and other.a is not None and other.b is not None:
                ours, theirs = (other.a, other.b) if is_a else (other.b, other.a)
                if len(ours.nodes) < len(theirs.nodes):
                    ours.take(group)
                    continue
        kept.append(row)
    return kept


def _gaps(rows: Sequence[CallPair]) -> Iterator[list[CallPair]]:
    """Rows that are not matched, grouped with their neighbours; each other row alone."""
    gap: list[CallPair] = []
    for row in rows:
        if (row.a is not None and row.b is not None) or row.is_wrapper:
            if gap:
                yield gap
                gap = []
            yield [row]
        else:
            gap.append(row)
    if gap:
        yield gap


def _only_ops(a: Sequence[CallGroup], b: Sequence[CallGroup]) -> list[tuple[int, int]]:
    """The one op of each, if they correspond and produce equal sizes."""
    if len(a) != 1 or len(b) != 1:
        return []
    one, other = a[0].event, b[0].event
    if isinstance(one, ModuleCall) or isinstance(other, ModuleCall):
        return []
    is_alike = one.level == other.level and sizes(one.outputs) == sizes(other.outputs)
    return [(0, 0)] if is_alike else []


def _only_modules(
    a: Sequence[CallGroup], b: Sequence[CallGroup], *, same_class: bool
) -> list[tuple[int, int]]:
    """The one module of each, where there is one in the place of the other."""
    ours = [at for at, group in enumerate(a) if isinstance(group.event, ModuleCall)]
    theirs = [at for at, group in enumerate(b) if isinstance(group.event, ModuleCall)]
    if len(ours) != 1 or len(theirs) != 1:
        return []
    one, other = a[ours[0]].event, b[theirs[0]].event
    if same_class and _class_of(one) != _class_of(other):
        return []
    return [(ours[0], theirs[0])]


def _class_of(event: Event) -> str:
    return event.class_name if isinstance(event, ModuleCall) else ""
