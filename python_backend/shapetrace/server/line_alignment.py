"""Which lines of a document are which lines of the source that ran.

Between two lines that are known to be the same, lines are matched by their text and the function
they are in, and only where there is no choice: what occurs once on both sides, or equally often and
in the same order.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise
from typing import TypeAlias

Line: TypeAlias = Hashable
"""The key by which two lines are equal."""

_HEADER = re.compile(r"\s*(?:async\s+def|def|class)\s+(\w+)")
_CONTINUING = (*")]}", '"', "'", "#")
"""How lines may begin that are less indented than those around them but end no block."""


class Alignment:
    """Follows one source text through the edits of a document.

    Lines are counted from 0. Lines that are matched keep their order, so that no two lines of the
    document are ever the same line of the source.
    """

    def __init__(self, ran: Sequence[str], now: Sequence[str]) -> None:
        self._ran = list(ran)
        self._now = list(now)
        self._origins: list[int | None] = [None] * len(self._now)
        self._lines: dict[int, int] | None = None
        """Where each line of the source is; made when it is asked for."""
        self._match(0, len(self._ran), 0, len(self._now))

    @property
    def origins(self) -> Sequence[int | None]:
        """For each line of the document the line of the source that it is."""
        return self._origins

    def document_line(self, ran_line: int) -> int | None:
        """Where a line of the source is in the document; None where it is no more."""
        if self._lines is None:
            self._lines = {
                origin: line for line, origin in enumerate(self._origins) if origin is not None
            }
        return self._lines.get(ran_line)

    def replace(self, first: int, removed: int, lines: Sequence[str]) -> None:
        """Follow an edit that put some lines in the place of others."""
        self._lines = None
        self._now[first : first + removed] = lines
        self._origins[first : first + removed] = [None] * len(lines)
        start, end = first, first + len(lines)
        while start > 0 and self._origins[start - 1] is None:
            start -= 1
        while end < len(self._origins) and self._origins[end] is None:
            end += 1
        before = None if start == 0 else self._origins[start - 1]
        behind = None if end == len(self._origins) else self._origins[end]
        first_ran = 0 if before is None else before + 1
        self._match(first_ran, len(self._ran) if behind is None else behind, start, end)

    def _match(self, ran_start: int, ran_end: int, start: int, end: int) -> None:
        if self._ran[ran_start:ran_end] == self._now[start:end]:
            self._origins[start:end] = range(ran_start, ran_end)
            return
        ran = in_scopes(self._ran, ran_start, ran_end)
        now = in_scopes(self._now, start, end)
        for ran_line, line in matches(ran, now, 0, len(ran), 0, len(now)):
            self._origins[start + line] = ran_start + ran_line


def in_scopes(lines: Sequence[str], start: int, end: int) -> list[tuple[str, ...]]:
    """Some lines of a text, each with the names of the classes and functions that it is in.

    Read from how far in lines begin: the text need not be valid.
    """
    scopes = _scopes_at(lines, start)
    found: list[tuple[str, ...]] = []
    for line in lines[start:end]:
        text = line.lstrip()
        indent = len(line) - len(text)
        if text and not text.startswith(_CONTINUING):
            while scopes and scopes[-1][0] >= indent:
                scopes.pop()
        found.append((line, *(name for _, name in scopes)))
        header = _HEADER.match(line)
        if header is not None:
            scopes.append((indent, header[1]))
    return found


def _scopes_at(lines: Sequence[str], start: int) -> list[tuple[int, str]]:
    """The classes and functions that are not over before a line: how far in they begin, and names.

    Outermost first; the line itself may end some of them.
    """
    scopes: list[tuple[int, str]] = []
    limit: int | None = None
    for line in reversed(lines[:start]):
        text = line.lstrip()
        indent = len(line) - len(text)
        if not text or text.startswith(_CONTINUING) or (limit is not None and indent >= limit):
            continue
        header = _HEADER.match(line)
        if header is not None:
            scopes.append((indent, header[1]))
        limit = indent
        if limit == 0:
            break
    return scopes[::-1]


def matches(
    ran: Sequence[Line], now: Sequence[Line], ran_start: int, ran_end: int, start: int, end: int
) -> Iterator[tuple[int, int]]:
    """The lines of two texts that are the same beyond doubt, as pairs, in no order."""
    gaps = [(ran_start, ran_end, start, end)]
    while gaps:
        ran_start, ran_end, start, end = gaps.pop()
        if ran_start == ran_end or start == end:
            continue
        if ran[ran_start:ran_end] == now[start:end]:
            yield from zip(range(ran_start, ran_end), range(start, end), strict=True)
            continue
        found = _certain(ran, now, ran_start, ran_end, start, end)
        yield from found
        borders = [(ran_start - 1, start - 1), *found, (ran_end, end)] if found else []
        gaps.extend(
            (before[0] + 1, behind[0], before[1] + 1, behind[1])
            for before, behind in pairwise(borders)
        )


def _certain(
    ran: Sequence[Line], now: Sequence[Line], ran_start: int, ran_end: int, start: int, end: int
) -> list[tuple[int, int]]:
    """Pairs of equal lines of two gaps, in order."""
    ran_counts = Counter(ran[ran_start:ran_end])
    counts = Counter(now[start:end])
    single = {text for text, count in counts.items() if count == 1 == ran_counts[text]}
    if single:
        places = {ran[line]: line for line in range(ran_start, ran_end) if ran[line] in single}
        pairs = [(places[now[line]], line) for line in range(start, end) if now[line] in single]
        return _longest_in_order(pairs)
    alike = {text for text, count in counts.items() if count == ran_counts[text]}
    ran_lines = [line for line in range(ran_start, ran_end) if ran[line] in alike]
    lines = [line for line in range(start, end) if now[line] in alike]
    if [ran[line] for line in ran_lines] != [now[line] for line in lines]:
        return []
    return list(zip(ran_lines, lines, strict=True))


def _longest_in_order(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The most pairs that do not cross each other; their second items are in order already."""
    ends: list[int] = []
    last: list[int] = []
    before: list[int | None] = []
    for index, (ran_line, _) in enumerate(pairs):
        length = bisect_left(ends, ran_line)
        before.append(last[length - 1] if length else None)
        if length == len(ends):
            ends.append(ran_line)
            last.append(index)
        else:
            ends[length] = ran_line
            last[length] = index
    chosen: list[tuple[int, int]] = []
    current = last[-1] if last else None
    while current is not None:
        chosen.append(pairs[current])
        current = before[current]
    return chosen[::-1]
