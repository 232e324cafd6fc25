"""Being told when torch has been imported, without importing it.

The program imports torch when and how it likes: after setting environment variables, in a thread,
inside a try. So nothing here imports it. A finder at the front of ``sys.meta_path`` lets the other
finders find it, and marks the spec they found: the import system clears ``_initializing`` on a spec
as its last act, and a spec of ours notices. A wrapped loader would be simpler, but would stand in
the traceback of an import that fails, and in what ``importlib.util.find_spec`` answers.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from threading import get_ident
from types import ModuleType
from typing import Any

from shapetrace._asynchronous import clean, is_asynchronous, surely
from shapetrace._exception_table import catching_everywhere, leaving_surely
from shapetrace._locks import holding


def when_torch_is_imported(callback: Callable[[], object]) -> Callable[[], None]:
    """Call back once torch is fully imported, at once if it is; returns how to cancel that."""
    return when_imported("torch", callback)


def when_imported(
    name: str, callback: Callable[[], object], undo: list[Callable[[], None]] | None = None
) -> Callable[[], None]:
    """Call back once, in the importing thread, when this top-level module is fully imported.

    The callback reports its own errors: an exception from it is dropped, as it must not become an
    error of the program's import statement. One of the program's own goes on, once the callback,
    which is called again for that, has done its work.

    How to cancel it is added to ``undo`` first, whatever is raised afterwards.
    """
    arrival = _Arrival(name, callback)
    if undo is not None:
        undo.append(arrival.cancel)
    sys.meta_path.insert(0, arrival)
    # Looked up only now: between looking and inserting another thread might have begun to import.
    module = sys.modules.get(name)
    if module is not None:
        arrival.already_in(module)
    return arrival.cancel


class _Arrival:
    """A finder that waits for one module; inert once it came.

    It is not derived from ``importlib.abc.MetaPathFinder``, as importing that imports much else.
    """

    def __init__(self, name: str, callback: Callable[[], object]) -> None:
        self._name = name
        self._callback: Callable[[], object] | None = callback
        self._caller: int | None = None
        """The thread that calls back; again where it was interrupted."""
        self._lock = threading.Lock()

    @catching_everywhere
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """What the other finders find, marked."""
        try:
            if fullname != self._name or self._callback is None:
                return None
            try:
                spec = self._found_by_others(fullname, path, target)
            except Exception as error:
                if is_asynchronous(error):
                    raise
                # They are asked again now, and raise it without this frame in its traceback.
                return None
            if spec is not None:
                self._mark(spec)
            return spec
        except BaseException as error:
            clean(error)
            raise

    def already_in(self, module: ModuleType) -> None:
        """The module is in ``sys.modules``: fully imported, or just being imported."""
        spec: Any = getattr(module, "__spec__", None)
        if getattr(spec, "_initializing", False):
            self._mark(spec)
            if spec._initializing:
                return
            # It came while the spec was being marked: nobody else will say so.
            spec._initializing = False
        self.arrived()

    @leaving_surely
    def arrived(self) -> None:
        """The import system is done with it, or gave up."""
        if sys.modules.get(self._name) is None:
            return
        with holding(self._lock):
            callback = self._callback
            if callback is None or self._caller not in (None, get_ident()):
                return
            self._caller = get_ident()
        surely(self._call, callback)

    def _call(self, callback: Callable[[], object]) -> None:
        self._leave()
        try:
            callback()
        except Exception as error:
            if is_asynchronous(error):
                raise
        self._callback = None

    @leaving_surely
    def cancel(self) -> None:
        """Wait no longer."""
        with holding(self._lock):
            self._callback = None
        self._leave()

    def _leave(self) -> None:
        try:
            sys.meta_path.remove(self)
        except ValueError:
            # The program has put together a list of its own.
            pass

    def _found_by_others(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        finders = list(sys.meta_path)
        if self in finders:
            # Those before this one have been asked.
            del finders[: finders.index(self) + 1]
        for finder in finders:
            find_spec = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find_spec(fullname, path, target) if find_spec else None
            if spec is not None:
                return spec
        return None

    def _mark(self, spec: ModuleSpec) -> None:
        try:
            _mark(spec, self)
        except TypeError:
            # A spec of somebody's own making, with slots: this import is not noticed.
            pass


def _mark(spec: ModuleSpec, arrival: _Arrival) -> None:
    """Make this spec tell when its module is initialized; afterwards it is as it was."""
    own_class = type(spec)
    spec.__dict__.setdefault("_initializing", False)
    spec.__class__ = type(
        own_class.__name__,
        (own_class,),
        {
            "__module__": own_class.__module__,
            "__qualname__": own_class.__qualname__,
            "_initializing": _Initializing(own_class, arrival),
        },
    )


class _Initializing:
    """The attribute of a spec that is cleared in the end.

    It has no ``__get__``: Python then reads what the spec itself has, without a frame of ours. The
    import system asks for it in C again and again, and drops what is raised there.
    """

    def __init__(self, own_class: type[ModuleSpec], arrival: _Arrival) -> None:
        self._own_class = own_class
        self._arrival = arrival

    @catching_everywhere
    def __set__(self, spec: ModuleSpec, value: bool) -> None:
        try:
            self._set(spec, value)
        except BaseException as error:
            surely(self._set, spec, value)
            clean(error)
            raise

    def _set(self, spec: ModuleSpec, value: bool) -> None:
        spec.__dict__["_initializing"] = value
        if not value:
            spec.__class__ = self._own_class
            self._arrival.arrived()
