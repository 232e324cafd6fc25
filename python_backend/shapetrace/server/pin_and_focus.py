"""What is pinned and what is focused, and which records are shown of a file because of that."""

from __future__ import annotations

from shapetrace.server.file_records import FileRecords, Key
from shapetrace.server.records_in_scope import Records, ScopedRecords
from shapetrace.server.repin import PinKey, pin_key_of
from shapetrace.server.scope import Scope, ScopePath
from shapetrace.server.store import TraceStore
from shapetrace.server.view import structure_of


class PinAndFocus:
    """The pin, the focus, and what follows from them. The later of the two is shown."""

    def __init__(self, store: TraceStore) -> None:
        self._store = store
        self._pin: Scope | None = None
        self._focus: Scope | None = None
        self._is_pin_later = False
        self._pin_key: PinKey | None = None
        """How to find what is pinned in another run."""
        self.is_waiting = False
        """Whether a newer run has not come to what is pinned."""
        self._scope_path: ScopePath | None = None
        self._files: dict[str, tuple[FileRecords, str | None, ScopedRecords]] = {}

    @property
    def pinned(self) -> Key | None:
        """The number of the process and of the call that is pinned; 0 for a whole process."""
        return None if self._pin is None else (self._pin.process, self._pin.call or 0)

    @property
    def shown(self) -> Scope | None:
        """What is looked at; None for all calls."""
        if self._focus is None or (self._is_pin_later and self._pin is not None):
            return self._pin
        return self._focus

    @property
    def is_pin_shown(self) -> bool:
        """Whether what is looked at is what is pinned."""
        return self._pin is not None and self.shown is self._pin

    @property
    def scope_path(self) -> ScopePath | None:
        """What is looked at, and its process."""
        scope = self.shown
        process = None if scope is None else self._store.process(scope.process)
        if scope is None or process is None:
            # What is kept of it would keep the whole session.
            self._scope_path = None
            self._files.clear()
            return None
        former = self._scope_path
        if former is None or former.scope != scope or former.process is not process:
            self._scope_path = ScopePath(scope, process)
            self._files.clear()
        return self._scope_path

    def set_pin(self, pin: Key | None) -> None:
        """Pin a call, or a whole process with 0 for the call, or nothing."""
        process = None if pin is None else self._store.process(pin[0])
        self._pin_key = None if pin is None or process is None else pin_key_of(process, pin[1])
        self._pin = None if pin is None else Scope(pin[0], pin[1] or None)
        self._is_pin_later = True
        self.is_waiting = False

    def set_focus(self, focus: Scope | None) -> bool:
        """Look at a stack frame, or at none; say whether that is something else than before."""
        if focus == self._focus:
            return False
        self._focus = focus
        self._is_pin_later = focus is None
        return True

    def follow_pin(self) -> bool:
        """Go on to what is pinned in a newer run; say whether anything is different now.

        Until that is recorded there, the pin waits. It is dropped where that run has ended without
        it, and where what is pinned has been cleared away.
        """
        if self._pin is None or self._pin_key is None:
            return False
        process = self._store.process(self._pin.process)
        newest = self._store.newest_session()
        if process is not None and (process.is_running or process.session is newest):
            if self._pin.call is None or self._pin.call in process.nesting:
                return False
            self.set_pin(None)
            return True
        was_waiting, self.is_waiting = self.is_waiting, True
        if newest is None or newest.order < self._pin_key.order:
            return not was_waiting
        found = self._pin_key.find(newest)
        if found is not None:
            self._pin = Scope(found[0], found[1] or None)
            self.is_waiting = False
        elif newest.is_finished:
            self.set_pin(None)
        else:
            return not was_waiting
        return True

    def records(self, key: str) -> Records | None:
        """What is shown of a file, by its key."""
        scope_path = self.scope_path
        if scope_path is None:
            return self._store.records(key)
        own = scope_path.process.session.files.get(key)
        newest = self._store.records(key)
        if self.is_waiting and self.is_pin_shown and newest is not own:
            # The newer run is shown as far as it has come, if only to this file.
            return newest
        base = newest if own is None or own.is_empty else own
        if base is None or base.text is None:
            return base
        known = self._files.get(key)
        if known is None or known[0] is not base or known[1] != base.text:
            scoped = ScopedRecords(base, key, structure_of(base.text), scope_path)
            known = self._files[key] = (base, base.text, scoped)
        return known[2]
