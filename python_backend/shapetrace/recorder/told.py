"""Which stores of a function need not be looked at, since recorded calls tell what they store.

That is asked of each store once, and again when another call was the last one at its place: a
function may have thousands of stores, and looks at it at each of its calls.
"""

from __future__ import annotations

from itertools import compress
from operator import attrgetter, is_not
from typing import Any, Final

from shapetrace.recorder.callsite import Site

_LAST_OP: Final = attrgetter("last")
_LAST_MODULE: Final = attrgetter("called")


class Told:
    """The stores of one activation of which recorded calls tell what they store."""

    def __init__(self) -> None:
        self._bits = 0
        self._sites: Final[list[Site]] = []
        """The place whose call tells of a store."""
        self._bit_of: Final[list[int]] = []
        """For each of them, what stands for the store."""
        self._last_ops: Final[list[Any]] = []
        self._last_modules: Final[list[Any]] = []
        """For each of them, the last call there when it was asked."""

    def add(self, bit: int, site: Site) -> None:
        """Note that the last call at a place tells what a store stores."""
        self._bits |= bit
        self._sites.append(site)
        self._bit_of.append(bit)
        self._last_ops.append(site.last)
        self._last_modules.append(site.called)

    def bits(self) -> int:
        """What stands for the stores that are still told of."""
        self._drop_where_another(self._last_ops, _LAST_OP)
        self._drop_where_another(self._last_modules, _LAST_MODULE)
        return self._bits

    def _drop_where_another(self, calls: list[Any], last: attrgetter[Any]) -> None:
        differs = map(is_not, map(last, self._sites), calls)
        for index in reversed(list(compress(range(len(calls)), differs))):
            self._bits &= ~self._bit_of[index]
            for parts in (self._sites, self._bit_of, self._last_ops, self._last_modules):
                del parts[index]
