"""Paths of values: ``layers.*.attn.forward.scores``.

    [module.]function                 what the function returns
    [module.]function.local[.key…]    a variable of it, or what is in that
    module                            what the module's forward returns

``*`` stands for one component, whichever it is, ``**`` for any number of them, and for none. One
that stands for modules or functions does not go on into what their variables hold: ``**.mask`` is
every variable of that name, ``forward.**.mask`` also what is called so in those of forward. What is
in quotes is taken as it is: ``forward.batch.'a.b'``. A function within a function is a component
more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final, NoReturn

from shapetrace._errors import PathError

ONE: Final = "*"
ANY: Final = "**"

States = frozenset[int]
"""Match state: all positions in the path where the rest may begin."""

NOWHERE: Final[States] = frozenset()

_TOKEN: Final = re.compile(r"""'[^']*'|"[^"]*"|[^.'"\s*\[\]]+|\*+""")
_MOST_NAMES: Final = 5


@dataclass(frozen=True, slots=True)
class PathPart:
    """One component of a path."""

    text: str
    is_wild: bool = False

    def matches(self, name: str) -> bool:
        """Return whether a name matches this component; any name matches ``**``."""
        return self.is_wild or self.text == name


@dataclass(frozen=True, slots=True)
class ValuePath:
    """A parsed path, matched name by name."""

    text: str
    parts: tuple[PathPart, ...]

    @property
    def start(self) -> States:
        """The state before the first name."""
        return self._closed({0})

    @property
    def is_wild(self) -> bool:
        """Whether the path can match more than one value."""
        return any(part.is_wild for part in self.parts)

    def after(
        self, states: States, name: str, *, by_name: bool = False, spent: States = NOWHERE
    ) -> States:
        """The state after a name; empty if the name does not match.

        With ``by_name``, wildcards do not match. A spent ``**`` matches only at the end of the
        path, and only one name.
        """
        found = set()
        for state in states:
            if state == len(self.parts):
                continue
            part = self.parts[state]
            if not part.matches(name) or (by_name and part.is_wild):
                continue
            if part.text != ANY or not part.is_wild:
                found.add(state + 1)
            elif state not in spent:
                found.add(state)
            elif len(self.parts) in self._closed({state + 1}):
                found.add(len(self.parts))
        return self._closed(found) if found else NOWHERE

    def is_complete(self, states: States) -> bool:
        """Return whether the whole path has matched."""
        return len(self.parts) in states

    def goes_on(self, states: States) -> bool:
        """Return whether more names can match."""
        return any(state < len(self.parts) for state in states)

    def named_next(self, states: States) -> list[str]:
        """The names that can match next, without wildcards."""
        following = (self.parts[state] for state in sorted(states) if state < len(self.parts))
        return [part.text for part in following if not part.is_wild]

    def _closed(self, states: Iterable[int]) -> States:
        found = set(states)
        for state in sorted(found):
            while state < len(self.parts) and self.parts[state] == PathPart(ANY, True):
                state += 1
                found.add(state)
        return frozenset(found)


def parse(text: object) -> ValuePath:
    """Parse a path; raises an error with the position of the mistake."""
    if not isinstance(text, str):
        raise PathError(f"a path is a text such as 'layers.*.forward', not {text!r}")
    parts: list[PathPart] = []
    position = 0
    while True:
        token = _TOKEN.match(text, position)
        if token is None:
            _refuse(text, position)
        word = token[0]
        if word[0] == ONE and len(word) > len(ANY):
            raise _error(text, position, "'**' is the longest wildcard")
        is_quoted = word[0] in "'\""
        parts.append(PathPart(word[1:-1] if is_quoted else word, word[0] == ONE))
        position = token.end()
        if position == len(text):
            return ValuePath(text, tuple(parts))
        if text[position] != ".":
            if parts[-1].is_wild or text[position] == ONE:
                raise _error(text, position, "a wildcard stands for a whole component")
            _refuse(text, position)
        position += 1


def _refuse(text: str, position: int) -> NoReturn:
    rest = text[position:]
    if not rest or rest[0] == ".":
        raise _error(text, position, "a name or a wildcard is missing")
    if rest[0] == "[":
        raise _error(text, position, "items are written as components: outs.0, batch.mask")
    if rest[0] in "'\"":
        raise _error(text, position, "a quoted component stands alone, and ends in a quote")
    raise _error(text, position, f"{rest[0]!r} cannot be there")


def _error(text: str, position: int, reason: str) -> PathError:
    return PathError(f"path {text!r}, character {position + 1}: {reason}")


def component(name: str) -> str:
    """A name in the syntax of a path, quoted if necessary."""
    token = _TOKEN.fullmatch(name)
    if token is not None and name[0] not in "*'\"":
        return name
    return f'"{name}"' if "'" in name else f"'{name}'"


def joined(*names: str) -> str:
    """Join names to a path; empty ones are left out."""
    return ".".join(name for name in names if name)


def nearest(name: str, names: Iterable[str]) -> list[str]:
    """The names most similar to a name, the most similar first."""

    def likeness(other: str) -> float:
        folded, wanted = other.lower(), name.lower()
        ratio = SequenceMatcher(None, wanted, folded).ratio()
        return ratio + (folded.startswith(wanted) or wanted.startswith(folded))

    return sorted(dict.fromkeys(names), key=likeness, reverse=True)[:_MOST_NAMES]
