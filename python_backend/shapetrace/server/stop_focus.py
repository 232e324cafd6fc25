"""The stop that the editor selects, found in what its process says.

The editor names a stop by its number, and the agent sends what there is to say of it over its own
socket. Either may come first. The editor's request is answered when both are there, or when it has
turned out that nothing comes; what comes still later is shown all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from shapetrace.server.listener import ProcessKey
from shapetrace.server.messages.focus import Focus, Focused, SourceLine, StopReference
from shapetrace.server.pin_and_focus import PinAndFocus
from shapetrace.server.processes import Process
from shapetrace.server.scope import Scope
from shapetrace.server.store import TraceStore
from shapetrace.transport.messages import NumberedStop

PATIENCE: Final = 10.0
"""Seconds after which the editor is answered without a stop that has not come."""

_NOTHING: Final = Focused()


class StopFocus:
    """The selected stop, and the request that waits for it."""

    def __init__(
        self,
        store: TraceStore,
        scopes: PinAndFocus,
        refresh: Callable[[], None],
        patience: float = PATIENCE,
    ) -> None:
        """``refresh`` is called when other calls are to be shown than before."""
        self._store = store
        self._scopes = scopes
        self._refresh = refresh
        self._patience = patience
        self._wanted: StopReference | None = None
        self._shown: tuple[int, int] | None = None
        """The number of the process in the store, and of the stop, once the wanted one is shown."""
        self._waiting: asyncio.Future[Focused] | None = None

    async def focus(self, given: Focus) -> Focused:
        """Show a stop, or none any more; answers once it is known where that is."""
        self._answer(_NOTHING)  # Of another frame, which is selected no more.
        self._wanted, self._shown = given.stop, None
        waiting: asyncio.Future[Focused] = asyncio.get_running_loop().create_future()
        self._waiting = waiting
        self.changed()
        try:
            async with asyncio.timeout(self._patience):
                return await waiting
        except TimeoutError:
            if waiting is self._waiting:
                self._show_nothing()
            return _NOTHING

    def changed(self) -> None:
        """Look whether the stop has come, or will not."""
        wanted = self._wanted
        if wanted is None:
            self._show_nothing()
            return
        key = ProcessKey(wanted.session, wanted.process)
        process = self._store.processes(wanted.session).get(key)
        if process is None or self._shown == (process.number, wanted.number):
            return
        if process.stop is not None and process.stop.number == wanted.number:
            self._show(process, process.stop)
        elif not process.is_running:
            # It may connect anew, and would send the stop once more.
            self._show_nothing()

    def _show(self, process: Process, told: NumberedStop) -> None:
        own = told.stop.own
        self._shown = (process.number, told.number)
        self._set(Scope(process.number, told.stop.call, told.stop))
        self._answer(Focused(SourceLine(own.file, own.line)))

    def _show_nothing(self) -> None:
        self._shown = None
        self._set(None)
        self._answer(_NOTHING)

    def _set(self, scope: Scope | None) -> None:
        if self._scopes.set_focus(scope):
            self._refresh()

    def _answer(self, answer: Focused) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)
