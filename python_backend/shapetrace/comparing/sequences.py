"""Aligning two sequences: which items of one are which of the other, in the order of both.

An item is known by keys, numbers of which the first says most and the last must be equal for two
items to be the same at all. Rare items are matched first, and hold what lies between them; short
stretches are then matched as well as can be, long ones by counting. Nothing here takes time that
grows with the square of what is compared.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from typing import Final, TypeAlias, TypeVar

Keys: TypeAlias = Sequence[Sequence[int]]
"""For each level, from the one that says most, the key of every item."""

Match: TypeAlias = tuple[int, int]

_Gap: TypeAlias = tuple[int, int, int, int, int]
"""From and to in one, from and to in the other, and how often it was divided."""

_SMALL: Final = 4096
"""Products of lengths up to which all ways to match two sequences are tried."""

_WINDOWS: Final = (12, 5)
"""How many items in a row are looked for, where single ones are all too common."""

_Key = TypeVar("_Key", bound=Hashable)

_DEEPEST: Final = 24
"""How often a stretch is divided before what is left of it counts as different."""


def align(a: Keys, b: Keys) -> list[Match]:
    """The positions that belong together, rising on both sides."""
    matches: list[Match] = []
    gaps: list[_Gap] = [(0, len(a[-1]), 0, len(b[-1]), 0)]
    while gaps:
        low_a, high_a, low_b, high_b, depth = gaps.pop()
        low_a, low_b = _trim_start(a[0], b[0], low_a, high_a, low_b, high_b, matches)
        high_a, high_b = _trim_end(a[0], b[0], low_a, high_a, low_b, high_b, matches)
        if low_a == high_a or low_b == high_b:
            continue
        if (high_a - low_a) * (high_b - low_b) <= _SMALL:
            matches += _best(a, b, low_a, high_a, low_b, high_b)
        elif depth < _DEEPEST:
            anchors = _anchors(a, b, low_a, high_a, low_b, high_b)
            matches += anchors
            if anchors:
                gaps += _between(anchors, low_a, high_a, low_b, high_b, depth + 1)
    matches.sort()
    return matches


def rising(pairs: list[Match]) -> list[Match]:
    """The longest part of some pairs, sorted by their first, in which the second rises too."""
    ends: list[int] = []
    at: list[int] = []
    before: list[int] = []
    for position, (_, second) in enumerate(pairs):
        length = bisect_left(ends, second)
        before.append(at[length - 1] if length else -1)
        if length == len(ends):
            ends.append(second)
            at.append(position)
        else:
            ends[length] = second
            at[length] = position
    chosen: list[Match] = []
    position = at[-1] if at else -1
    while position >= 0:
        chosen.append(pairs[position])
        position = before[position]
    return chosen[::-1]


def _trim_start(
    a: Sequence[int],
    b: Sequence[int],
    low_a: int,
    high_a: int,
    low_b: int,
    high_b: int,
    matches: list[Match],
) -> Match:
    while low_a < high_a and low_b < high_b and a[low_a] == b[low_b]:
        matches.append((low_a, low_b))
        low_a += 1
        low_b += 1
    return low_a, low_b


def _trim_end(
    a: Sequence[int],
    b: Sequence[int],
    low_a: int,
    high_a: int,
    low_b: int,
    high_b: int,
    matches: list[Match],
) -> Match:
    while low_a < high_a and low_b < high_b and a[high_a - 1] == b[high_b - 1]:
        high_a -= 1
        high_b -= 1
        matches.append((high_a, high_b))
    return high_a, high_b


def _anchors(a: Keys, b: Keys, low_a: int, high_a: int, low_b: int, high_b: int) -> list[Match]:
    """Items that must be the same, as there is one of their kind; else by the number of each."""
    for ours, theirs in zip(a, b, strict=True):
        single_a = _singles(ours, low_a, high_a)
        single_b = _singles(theirs, low_b, high_b)
        pairs = [(at, single_b[key]) for key, at in single_a.items() if key in single_b]
        if pairs:
            return rising(pairs)
    for width in _WINDOWS:
        rows_a = _singles(_windows(a[-1], low_a, high_a, width), 0, high_a - low_a)
        rows_b = _singles(_windows(b[-1], low_b, high_b, width), 0, high_b - low_b)
        pairs = [(low_a + at, low_b + rows_b[key]) for key, at in rows_a.items() if key in rows_b]
        if pairs:
            return rising(pairs)
    for ours, theirs in zip(a, b, strict=True):
        counted_b = {key: at for at, key in _counted(theirs, low_b, high_b)}
        pairs = [
            (at, counted_b[key]) for at, key in _counted(ours, low_a, high_a) if key in counted_b
        ]
        if pairs:
            return rising(pairs)
    return []


def _windows(keys: Sequence[int], low: int, high: int, width: int) -> list[tuple[int, ...]]:
    """Each item with its successors: common items have rare neighbours."""
    return list(zip(*(keys[low + shift : high] for shift in range(width)), strict=False))


def _singles(keys: Sequence[_Key], low: int, high: int) -> dict[_Key, int]:
    """The positions of the keys that occur there once, in order."""
    found: dict[_Key, int] = {}
    for at in range(low, min(high, len(keys))):
        key = keys[at]
        found[key] = -1 if key in found else at
    return {key: at for key, at in found.items() if at >= 0}


def _counted(keys: Sequence[int], low: int, high: int) -> list[tuple[int, tuple[int, int]]]:
    """Each position with its key, and how often that stood there before."""
    counts: dict[int, int] = {}
    counted: list[tuple[int, tuple[int, int]]] = []
    for at in range(low, high):
        key = keys[at]
        counts[key] = number = counts.get(key, 0) + 1
        counted.append((at, (key, number)))
    return counted


def _between(
    anchors: list[Match], low_a: int, high_a: int, low_b: int, high_b: int, depth: int
) -> list[_Gap]:
    gaps: list[_Gap] = []
    for at_a, at_b in [*anchors, (high_a, high_b)]:
        if low_a < at_a and low_b < at_b:
            gaps.append((low_a, at_a, low_b, at_b, depth))
        low_a, low_b = at_a + 1, at_b + 1
    return gaps


def _best(a: Keys, b: Keys, low_a: int, high_a: int, low_b: int, high_b: int) -> list[Match]:
    """The matches of a short stretch that agree in most."""
    levels = len(a)
    columns = high_b - low_b
    rows: list[list[int]] = [[0] * (columns + 1)]
    weights: list[list[int]] = []
    theirs = [tuple(keys[at] for keys in b) for at in range(low_b, high_b)]
    for at_a in range(low_a, high_a):
        ours = tuple(keys[at_a] for keys in a)
        weighed = [_weight(ours, other, levels) for other in theirs]
        above = rows[-1]
        row = [0]
        left = 0
        for column, weight in enumerate(weighed):
            best = above[column + 1]
            if left > best:
                best = left
            if weight and above[column] + weight > best:
                best = above[column] + weight
            row.append(best)
            left = best
        rows.append(row)
        weights.append(weighed)
    found: list[Match] = []
    row_number, column = high_a - low_a, columns
    while row_number and column:
        here = rows[row_number][column]
        weight = weights[row_number - 1][column - 1]
        if here == rows[row_number - 1][column]:
            row_number -= 1
        elif here == rows[row_number][column - 1]:
            column -= 1
        else:
            assert weight
            row_number -= 1
            column -= 1
            found.append((low_a + row_number, low_b + column))
    return found


def _weight(ours: tuple[int, ...], theirs: tuple[int, ...], levels: int) -> int:
    """How much two items have in common: more for each further level, nothing without the last."""
    if ours[-1] != theirs[-1]:
        return 0
    weight = levels
    for level in range(levels - 1):
        if ours[level] == theirs[level]:
            weight += 2
    return weight
