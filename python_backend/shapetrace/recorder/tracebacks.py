"""Taking our frames, and those that torch added because of us, out of a traceback."""

from __future__ import annotations

import sys
from types import CodeType, TracebackType
from typing import Any, Final

from torch._ops import OpOverload

from shapetrace._asynchronous import drop_our_faults, is_ours, linked, related
from shapetrace.recorder.callsite import HANDLE_TORCH_FUNCTION

_OPERATOR_CALL: Final = OpOverload.__call__.__code__


_BASE: Final[Any] = BaseException


def take_out_our_frames(error: BaseException) -> None:
    """Clean the traceback of an exception, of those it came from, and of those it groups."""
    for each in related(error):
        clean(each)


class LastWord:
    """Has the error that ends a program shown without our frames.

    It stands in for ``sys.excepthook`` from such an error on, until that is shown, or for as long
    as a recording goes on: a program may look at it before, and finds what it had.
    """

    def __init__(self) -> None:
        self._original: Any = None
        self._stand_in: Any = None

    def prepare(self) -> None:
        """An error has begun its way out of the program, and no module call is around it."""
        current = getattr(sys, "excepthook", None)
        if current is not None and current is not self._stand_in:
            self._original, self._stand_in = current, self._in_place_of(current)
            sys.excepthook = self._stand_in

    def forget(self) -> None:
        """Put back the previous hook, unless another tool has replaced ours."""
        original, self._original = self._original, None
        stand_in, self._stand_in = self._stand_in, None
        if stand_in is not None and getattr(sys, "excepthook", None) is stand_in:
            sys.excepthook = original

    def _in_place_of(self, original: Any) -> Any:
        # It keeps its own original: a program may have kept it for its own hook.
        def excepthook(
            kind: type[BaseException], error: BaseException, traceback: TracebackType | None
        ) -> Any:
            self.forget()
            try:
                take_out_our_frames(error)
            except Exception:
                return original(kind, error, traceback)  # no room on the stack, say
            return original(kind, error, _BASE.__traceback__.__get__(error))

        return excepthook


def clean(error: BaseException) -> None:
    """Clean the traceback of one exception, whose class may not let its attributes be set."""
    traceback = without_our_frames(_BASE.__traceback__.__get__(error))
    drop_our_faults(error)
    BaseException.with_traceback(error, traceback)


def without_our_frames(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback as it would be without us. Entries are unlinked in place.

    A Python-level torch function that a mode sees runs twice, once to hand the call over and once
    to do the work; the first run and the hand-over are taken out too. They lie outside of our own
    frames, so that it takes a module call, or the end of the program, to do that: a program that
    catches the error right behind such a function, outside of any module, finds them there.

    An operator that our dispatch mode calls is called by Python where C++ would have called it.
    """
    kept: list[TracebackType] = []
    entry = traceback
    after_ours = False
    while entry is not None:
        code = entry.tb_frame.f_code
        was_ours, after_ours = after_ours, is_ours(code)
        if not after_ours and not (was_ours and code is _OPERATOR_CALL):
            if kept and kept[-1].tb_frame.f_code is HANDLE_TORCH_FUNCTION:
                _drop_first_run(kept, code)
            kept.append(entry)
        entry = entry.tb_next
    return linked(kept)


def _drop_first_run(kept: list[TracebackType], code: CodeType) -> None:
    for index in range(len(kept) - 2, max(len(kept) - 6, -1), -1):
        if kept[index].tb_frame.f_code is code:
            del kept[index:]
            return
