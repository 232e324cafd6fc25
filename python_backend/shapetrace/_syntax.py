"""Run Python's compiler on source text without showing its warnings."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable
from typing import Final, TypeVar

_Result = TypeVar("_Result")

_UNNAMED: Final = "<what shapetrace reads>"
_NO_WARNINGS: Final = ("ignore", None, Warning, re.compile(re.escape(_UNNAMED)), 0)


def parsed(text: str) -> ast.Module:
    """The tree of a module, without a warning."""
    return silently(lambda name: ast.parse(text, name))


def silently(action: Callable[[str], _Result]) -> _Result:
    """Return the result of an action of the compiler on a file name for which no warning is shown.

    Neither `catch_warnings` nor `filterwarnings`: both make all warnings that are shown only once
    appear anew, in all threads. A filter put in place by hand concerns this name only.
    """
    # A list, though its type says that it cannot be changed.
    warnings.filters.insert(0, _NO_WARNINGS)  # type: ignore[attr-defined]
    try:
        return action(_UNNAMED)
    finally:
        warnings.filters.remove(_NO_WARNINGS)  # type: ignore[attr-defined]
