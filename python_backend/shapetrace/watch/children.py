"""Continues watching in processes that `multiprocessing` starts by spawn or forkserver.

The preparation data that a spawned process unpickles first gets one more item, which begins to
watch when it is unpickled. A fork server begins with its command line, as it may load the program's
modules for its children: preloaded ones, and on Python 3.14 the script. Forked processes inherit
everything, and need nothing.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from shapetrace._asynchronous import clean
from shapetrace._exception_table import catching_everywhere

_ITEM: Final = "shapetrace"

_STARTING: Final = frozenset(
    f"multiprocessing.popen_{way}" for way in ("spawn_posix", "spawn_win32", "forkserver")
)
"""The modules that start processes, each loaded at the first start."""

_FORK_SERVER: Final = "fork server"
_SERVES_FORKS: Final = "from multiprocessing.forkserver import main"
"""Text that only a fork server's command contains."""

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
    """Calls a function of ours in the process that unpickles it."""

    def __init__(self, function: Callable[..., object], *arguments: object) -> None:
        self._function: Final = function
        self._arguments: Final = arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return (exec, (self._text(), {}))

    def before(self, command: str) -> str:
        """A command for ``python -c`` that calls the function first."""
        return f"exec({self._text()!r}, {{}}); {command}"

    def _text(self) -> str:
        # It imports nothing that the process cannot find yet.
        return _BEGIN.format(
            folders=[_backend()],
            module=self._function.__module__,
            function=self._function.__qualname__,
            arguments=self._arguments,
        )


def _backend() -> str:
    from os.path import abspath, dirname

    return dirname(dirname(dirname(abspath(__file__))))


class Children:
    """Has started processes begin with a function call, until ``end``."""

    def __init__(self, function: Callable[..., object], *arguments: object) -> None:
        """``function`` is called with the name of the process and the arguments.

        The name is None if the process has its own. A process forked from one that has begun may
        begin again.
        """
        self._begin: Final = Begin(function, None, *arguments)
        self._begin_in_server: Final = Begin(function, _FORK_SERVER, *arguments)
        self._undo: Final[list[Callable[[], None]]] = []
        self.has_started = False
        """Whether any process was started."""

    def loading(self, module: str) -> None:
        """The program loads a module, perhaps one that starts processes."""
        if module in _STARTING:
            # Each of these modules imports it first.
            import multiprocessing.spawn

            self._begin_with(multiprocessing.spawn)

    def begin(self) -> None:
        """Begin; the modules that start processes may be loaded already."""
        spawn = sys.modules.get("multiprocessing.spawn")
        if spawn is not None and any(name in sys.modules for name in _STARTING):
            self._begin_with(spawn)

    def end(self) -> None:
        """Restore how processes are started."""
        while self._undo:
            self._undo.pop()()

    def _begin_with(self, spawn: Any) -> None:
        if not self._undo:
            self._replace(spawn, "get_preparation_data", self._preparing)
            self._replace(spawn.util, "spawnv_passfds", self._starting)

    def _replace(
        self, owner: Any, name: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]
    ) -> None:
        original = getattr(owner, name)
        stand_in = functools.wraps(original)(wrap(original))

        def put_back() -> None:
            if getattr(owner, name) is stand_in:
                setattr(owner, name, original)

        self._undo.append(put_back)
        setattr(owner, name, stand_in)

    def _preparing(self, original: Callable[..., Any]) -> Callable[..., Any]:
        begin = self._begin

        @catching_everywhere
        def get_preparation_data(name: str) -> dict[str, Any]:
            try:
                data: dict[str, Any] = original(name)
                self.has_started = True
                return {**data, _ITEM: begin}
            except BaseException as error:
                clean(error)
                raise

        return get_preparation_data

    def _starting(self, original: Callable[..., Any]) -> Callable[..., Any]:
        begin = self._begin_in_server

        @catching_everywhere
        def spawnv_passfds(path: Any, args: Sequence[Any], passfds: Any) -> Any:
            try:
                return original(path, [_with(begin, each) for each in args], passfds)
            except BaseException as error:
                clean(error)
                raise

        return spawnv_passfds


def _with(begin: Begin, argument: Any) -> Any:
    """An argument of a new process; a fork server's command gets our call."""
    if isinstance(argument, str) and _SERVES_FORKS in argument:
        return begin.before(argument)
    return argument
