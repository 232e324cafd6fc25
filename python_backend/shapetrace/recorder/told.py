"""Which stores of a function need not be looked at, since recorded calls tell what they store.

That is asked of each store once, and again when another call was the last one at its place: a
function may have thousands of stores, and looks at it at each of its calls.
"""

from __future__ import annotations

from itertools import compress
from operator import attrgetter, ne
from typing import Any, Final

from shapetrace.recorder.callsite import Site


class Told:
    """The stores of one activation of which recorded calls tell what they store."""

    def __init__(self) -> None:
        self._by_ops: Final = _Tellers(attrgetter("last"))
        self._by_modules: Final = _Tellers(attrgetter("last", "called"))
        self._bits = 0

    def add(self, bit: int, site: Site) -> None:
        """Note that the last call at a place tells what a store stores."""
        tellers = self._by_modules if site.last is None else self._by_ops
        tellers.add(bit, site)
        self._bits |= bit

    def bits(self) -> int:
        """What stands for the stores that are still told of."""
        self._bits &= ~(self._by_ops.drop() | self._by_modules.drop())
        return self._bits


class _Tellers:
    """Places whose last calls tell what is stored."""

    def __init__(self, last: attrgetter[Any]) -> None:
        self._last: Final = last
        """What was called last at a place."""
        self._sites: Final[list[Site]] = []
        self._bits: Final[list[int]] = []
        """For each place, what stands for the store."""
        self._calls: Final[list[Any]] = []
        """For each place, what had been called last when it was asked."""

    def add(self, bit: int, site: Site) -> None:
        self._sites.append(site)
        self._bits.append(bit)
        self._calls.append(self._last(site))

    def drop(self) -> int:
        """Forget the places where another call was the last, and return what they told of."""
        differs = map(ne, map(self._last, self._sites), self._calls)
        dropped = 0
        for index in reversed(list(compress(range(len(self._sites)), differs))):
            dropped |= self._bits[index]
            for parts in (self._sites, self._bits, self._calls):
                del parts[index]
        return dropped
