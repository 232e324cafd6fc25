"""Watches variables in a whole program: in modules it loads and processes it starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CodeType
from typing import Final

from shapetrace.instrument.interface import Listener
from shapetrace.variables.calls import name_process
from shapetrace.variables.outlets import Outlet, Printing
from shapetrace.watch.children import Children
from shapetrace.watch.listening import listener_for
from shapetrace.watch.loading import Loading
from shapetrace.watch.territory import Territory
from shapetrace.watch.unseen_names import Place
from shapetrace.watch.wanted import Wanted, wanted_from
from shapetrace.watch.watched_functions import Watching


class Watch:
    """Watches all that the program loads, in this process and its children."""

    def __init__(self, names: Sequence[str], packages: Sequence[str], printing: Printing) -> None:
        self._watching: Final = Watching(
            wanted_from(names), Territory(packages), _listen_for(printing)
        )
        look = (printing.color, printing.width)
        self._children: Final = Children(begin_in_child, (*names,), (*packages,), *look)
        self._loading: Final = Loading(self.prepared)

    def begin(self) -> None:
        """Begin to watch."""
        self._loading.begin()
        self._children.begin()

    def end(self) -> None:
        """Stop watching modules loaded from now on; functions stay followed."""
        self._children.end()
        self._loading.end()

    def prepared(self, code: CodeType, module: str, text: Callable[[], str | None]) -> CodeType:
        """The code to run in place of a module's own."""
        self._children.loading(module)
        return self._watching.prepared(code, module, text)

    def lines(self) -> list[str]:
        """The lines to print at the end."""
        # Forked processes share their flags of calls, spawned ones do not.
        is_alone = not self._children.has_started
        return self._watching.lines("" if is_alone else " in the main process")


_has_begun = False
"""Whether this process, or the one it was forked from, watches."""


def begin_in_child(
    process: str | None,
    names: Sequence[str],
    packages: Sequence[str],
    color: str,
    width: int | None,
) -> None:
    """Watch the same names in a spawned process, once; ``process`` is its name."""
    global _has_begun
    if _has_begun:
        return
    _has_begun = True
    if process is not None:
        name_process(process)
    Watch(names, packages, Printing(None, color, width)).begin()


def _listen_for(outlet: Outlet) -> Callable[[Place, CodeType, tuple[Wanted, ...]], Listener]:
    return lambda place, code, wanted: listener_for(place, code, wanted, outlet)
