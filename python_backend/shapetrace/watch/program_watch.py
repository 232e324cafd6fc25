"""Watching variables in the whole of a program: what it loads, and the processes it starts."""

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
    """Has everything that a program loads from now on told of, in this process and its children."""

    def __init__(self, names: Sequence[str], packages: Sequence[str], printing: Printing) -> None:
        self._watching: Final = Watching(
            wanted_from(names), Territory(packages), _listen_for(printing)
        )
        look = (printing.color, printing.width)
        self._children: Final = Children(begin_in_child, (*names,), (*packages,), *look)
        self._loading: Final = Loading(self.prepared)

    def begin(self) -> None:
        """From now on."""
        self._loading.begin()
        self._children.begin()

    def end(self) -> None:
        """Load what is to come as without us; what is followed goes on to be."""
        self._children.end()
        self._loading.end()

    def prepared(self, code: CodeType, module: str, text: Callable[[], str | None]) -> CodeType:
        """What is to run in place of a module's code."""
        self._children.loading(module)
        return self._watching.prepared(code, module, text)

    def lines(self) -> list[str]:
        """What there is to say in the end."""
        # Forked processes say what they have called, those that were started anew do not.
        is_alone = not self._children.has_started
        return self._watching.lines("" if is_alone else " in the main process")


_has_begun = False
"""Whether this process watches, or the one that it was forked from."""


def begin_in_child(
    process: str | None,
    names: Sequence[str],
    packages: Sequence[str],
    color: str,
    width: int | None,
) -> None:
    """Watch the same in a process that was started anew, once; ``process`` is what to call it."""
    global _has_begun
    if _has_begun:
        return
    _has_begun = True
    if process is not None:
        name_process(process)
    Watch(names, packages, Printing(None, color, width)).begin()


def _listen_for(outlet: Outlet) -> Callable[[Place, CodeType, tuple[Wanted, ...]], Listener]:
    return lambda place, code, wanted: listener_for(place, code, wanted, outlet)
