"""Raising an exception a moment later, where Python would lose it now.

What is raised in ``__del__``, or in the callback of a weak reference, is printed and dropped. An
exception of the program's that comes just then is raised as soon as that is over: by
``raise_later`` where that code is ours, after a block with ``Undropped`` where it is a library's.
"""

from __future__ import annotations

import _thread
import sys
import threading
import weakref
from functools import partial
from typing import Any, Final

from shapetrace._asynchronous import clean, is_asynchronous, surely
from shapetrace._exception_table import catching_everywhere

_waiting: Final[set[_Pending]] = set()
"""Those whose turn has not come: the interpreter knows them by their address only."""


class _Holder:
    __slots__ = ("__weakref__",)


class _Pending:
    """Raises an exception when C asks whether it is true, which runs no frame but that one."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __bool__(self) -> bool:
        _waiting.discard(self)
        try:
            raise self.error
        except BaseException as error:
            clean(error)
            raise


class Undropped:
    """Raises at the end of a block what Python has dropped in it: of the program's, in this thread.

    Blocks of other threads may begin in this one and end after it. The last one that ends puts
    ``sys.unraisablehook`` back.
    """

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.is_over = False

    def __enter__(self) -> None:
        _put_back()
        sys.unraisablehook = _Hook(self, sys.unraisablehook)

    @catching_everywhere
    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        try:
            self._end()
            if self.error is not None and error is None:
                raise self.error
        except BaseException:
            surely(self._end)
            raise

    def _end(self) -> None:
        self.is_over = True
        _put_back()


class _Hook:
    """Hears of what Python is about to print, as ``sys.unraisablehook``."""

    def __init__(self, block: Undropped, before: Any) -> None:
        self.before = before
        self._block = weakref.ref(block)
        self._thread = _thread.get_ident()

    def __call__(self, unraisable: Any, /) -> None:
        error = unraisable.exc_value
        block = self.block() if self._thread == _thread.get_ident() else None
        if block is not None and error is not None and is_asynchronous(error):
            block.error = error
        else:
            self.before(unraisable)

    def block(self) -> Undropped | None:
        """The block, as long as it goes on; it is held by the ``with`` alone."""
        block = self._block()
        return None if block is None or block.is_over else block


def _put_back() -> None:
    hook: Any = sys.unraisablehook
    while type(hook) is _Hook and hook.block() is None:
        hook = sys.unraisablehook = hook.before


def raise_later(error: BaseException) -> object:
    """Have the thread raise an exception when the calling function is over.

        later = raise_later(error)
        del later  # the last thing that the function does

    Python looks for what is to be raised after each call, so nothing may be called after that. In
    the main thread the exception itself is raised. In others it is one of its class, as
    ``PyThreadState_SetAsyncExc`` can have no other, and it was the only way in which one can have
    come there.
    """
    import ctypes

    call: Any
    if _thread.get_ident() == threading.main_thread().ident:
        pending = _Pending(error)
        _waiting.add(pending)
        is_true = ctypes.cast(ctypes.pythonapi.PyObject_IsTrue, ctypes.c_void_p)
        call = map(ctypes.pythonapi.Py_AddPendingCall, [is_true], [ctypes.c_void_p(id(pending))])
    else:
        call = map(
            ctypes.pythonapi.PyThreadState_SetAsyncExc,
            [ctypes.c_ulong(_thread.get_ident())],
            [ctypes.py_object(type(error))],
        )
    holder = _Holder()
    # A tuple lets go of its last item first, and then this takes the one item there is.
    return weakref.ref(holder, partial(next, call)), holder
