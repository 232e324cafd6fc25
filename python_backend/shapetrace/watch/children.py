"""Going on watching in processes that `multiprocessing` starts anew, by spawn or by a server.

What such a process is told before anything else of the program's is there, its preparation data,
is given one more item: one that begins to watch when it is unpickled. Forked processes have all of
this process in them, and need nothing.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, Final

from shapetrace._asynchronous import clean
from shapetrace._exception_table import catching_everywhere

_ITEM: Final = "shapetrace"

_STARTING: Final = frozenset(
    f"multiprocessing.popen_{way}" for way in ("spawn_posix", "spawn_win32", "forkserver")
)
"""The modules that start processes, each of which is loaded for the first of these."""

_BEGIN: Final = """\
import sys
path = sys.path
sys.path = [*path, *{folders!r}]
try:
    from {module} import {function} as begin
finally:
    sys.path = path
begin(*{arguments!r})
"""


class Begin:
    """Pickled, this is a call of a function of ours in the process that reads it."""

    def __init__(self, function: Callable[..., object], *arguments: object) -> None:
        self._function: Final = function
        self._arguments: Final = arguments

    def __reduce__(self) -> tuple[Any, ...]:
        # As text, which needs nothing to be found that the process cannot find yet.
        text = _BEGIN.format(
            folders=[_backend()],
            module=self._function.__module__,
            function=self._function.__qualname__,
            arguments=self._arguments,
        )
        return (exec, (text,))


def _backend() -> str:
    from os.path import abspath, dirname

    return dirname(dirname(dirname(abspath(__file__))))


class Children:
    """Has processes that are started begin with something, until this is ended."""

    def __init__(self, function: Callable[..., object], *arguments: object) -> None:
        self._begin: Final = Begin(function, *arguments)
        self._undo: Callable[[], None] | None = None
        self.has_started = False
        """Whether there was any."""

    def loading(self, module: str) -> None:
        """The program loads a module: one that is to start processes, perhaps."""
        if module in _STARTING:
            # Each of these imports it as the first thing that it does.
            import multiprocessing.spawn

            self._replace(multiprocessing.spawn)

    def begin(self) -> None:
        """From now on; what starts processes may be loaded already."""
        spawn = sys.modules.get("multiprocessing.spawn")
        if spawn is not None and any(name in sys.modules for name in _STARTING):
            self._replace(spawn)

    def end(self) -> None:
        """Let processes start as without us."""
        undo, self._undo = self._undo, None
        if undo is not None:
            undo()

    def _replace(self, spawn: Any) -> None:
        if self._undo is not None:
            return
        original = spawn.get_preparation_data
        begin = self._begin

        @functools.wraps(original)
        @catching_everywhere
        def get_preparation_data(name: str) -> dict[str, Any]:
            try:
                data: dict[str, Any] = original(name)
                self.has_started = True
                return {**data, _ITEM: begin}
            except BaseException as error:
                clean(error)
                raise

        def put_back() -> None:
            if spawn.get_preparation_data is get_preparation_data:
                spawn.get_preparation_data = original

        self._undo = put_back
        spawn.get_preparation_data = get_preparation_data
