"""The state in which a program starts: a ``__main__``, ``sys.path[0]``, ``sys.orig_argv``."""

from __future__ import annotations

import builtins
import sys
from types import ModuleType
from typing import Any

_own_main: list[ModuleType] = []
"""The ``__main__`` of this runner: it must live on, as its code is still running."""


def fresh_main(loader: object, file: str | None = None) -> dict[str, Any]:
    """Put a new ``__main__`` in the place of ours; returns its namespace."""
    own = sys.modules["__main__"]
    _own_main.append(own)
    main = ModuleType("__main__")
    namespace = vars(main)
    namespace["__loader__"] = loader
    # Which of these there are depends on the Python version; ours was made by the same one.
    if "__annotations__" in vars(own):
        namespace["__annotations__"] = {}
    namespace["__builtins__"] = builtins
    if file is not None:
        namespace["__file__"] = file
        if "__cached__" in vars(own):
            namespace["__cached__"] = None
    sys.modules["__main__"] = main
    return namespace


def set_first_path(entry: str | None, *, even_when_safe: bool = False) -> None:
    """Put the program's own directory where python put ours.

    Under ``python -P`` neither has a place there, except a directory or archive that is itself the
    program, as it is found by that entry.
    """
    if sys.flags.safe_path:
        if even_when_safe and entry is not None:
            sys.path.insert(0, entry)
        return
    if entry is None:
        del sys.path[:1]
    else:
        sys.path[:1] = [entry]


def set_original_arguments(command_line: tuple[str, ...]) -> None:
    """Make ``sys.orig_argv`` the command that would have run the program without us."""
    given = sys.orig_argv
    own = len(given) - (len(sys.argv) - 1)
    flags = given[:own]
    # The end of what is ours: `-m shapetrace`, `-mshapetrace` or the path of a console script.
    if flags[-2:-1] == ["-m"]:
        del flags[-2:]
    else:
        del flags[-1:]
    sys.orig_argv = [*(flags or [sys.executable]), *command_line]
