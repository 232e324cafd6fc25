"""Decides whether a file is the user's code or an installed library's."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from shapetrace._frames import OWN_DIRECTORY

_LIBRARY: Final = os.path.dirname(os.path.abspath(os.__file__))
_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})


class Territory:
    """The code in which variables are watched."""

    def __init__(self, packages: Iterable[str] = (), but: Iterable[str] = ()) -> None:
        """Installed ``packages`` count as well; files in ``but`` do not."""
        self._packages: Final = tuple(packages)
        self._excluded: Final = tuple(map(os.path.abspath, (OWN_DIRECTORY, *but)))

    def has(self, module: str, file: str) -> bool:
        """Return whether a module is the user's, or in one of ``packages``."""
        if file.startswith("<"):
            return False
        file = os.path.abspath(file)
        if any(_is_below(file, each) for each in self._excluded):
            return False
        if any(module == each or module.startswith(f"{each}.") for each in self._packages):
            return True
        return not any(_is_below(file, root) for root in _installed_roots(tuple(sys.path)))


@lru_cache(maxsize=8)
def _installed_roots(path: tuple[str, ...]) -> tuple[str, ...]:
    """The folders of installed libraries and the standard library."""
    found = [each for each in path if os.path.basename(os.path.normpath(each)) in _INSTALLED]
    return (_LIBRARY, *map(os.path.abspath, found))


def _is_below(file: str, folder: str) -> bool:
    return os.path.normcase(file).startswith(os.path.join(os.path.normcase(folder), ""))
