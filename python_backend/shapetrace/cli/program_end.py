"""How a program's end reaches the user: as python shows it, with nothing of this runner in it.

Python shows the error of a main program from C, after all frames are gone. The functions here do
the same from Python, as errors have to be shown before they have passed through our own frames.
"""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any, NoReturn

from shapetrace.process.trimmed_tracebacks import without_first_frame

_display = sys.__excepthook__


def end_as_python_would(error: BaseException) -> NoReturn:
    """Show an error that ended the program, then end with its exit code."""
    # Where torch was watched; nothing is imported for it.
    tracebacks: Any = sys.modules.get("shapetrace.recorder.tracebacks")
    if tracebacks is not None:
        tracebacks.take_out_our_frames(error)
    sys.last_type, sys.last_value = type(error), error
    sys.last_traceback = error.__traceback__
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    _show(error)
    # Python dies of the signal once everything is tidied up; before 3.14 by this very class alone.
    if type(error) is KeyboardInterrupt or (
        sys.version_info >= (3, 14) and isinstance(error, KeyboardInterrupt)
    ):
        end_by_interrupt()
    raise SystemExit(1)


def _show(error: BaseException) -> None:
    try:
        hook = sys.excepthook
    except AttributeError:
        _write("sys.excepthook is missing\n")
        _display(type(error), error, error.__traceback__)
        return
    try:
        hook(type(error), error, error.__traceback__)
        return
    except SystemExit:
        raise
    except BaseException as failure:
        hook_error = without_first_frame(failure)
    _write("Error in sys.excepthook:\n")
    _display(type(hook_error), hook_error, hook_error.__traceback__)
    _write("\nOriginal exception was:\n")
    _display(type(error), error, error.__traceback__)


def end_by_interrupt() -> NoReturn:
    """Raise a KeyboardInterrupt to the interpreter, which shows nothing more of it."""
    global _is_interrupted
    _is_interrupted = True
    hook = getattr(sys, "excepthook", None)
    last = {name: getattr(sys, name) for name in _LAST if hasattr(sys, name)}

    def show_nothing(
        kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        if hook is None:
            del sys.excepthook
        else:
            sys.excepthook = hook
        for name, value in last.items():
            setattr(sys, name, value)

    sys.excepthook = show_nothing
    raise KeyboardInterrupt


def keep_interrupt() -> None:
    """In an exit handler: have the process still die of the interrupt that ended its program.

    The interpreter forgets it when any source text is executed, as importing a dataclass does, and
    notes it again when such text ends in an interrupt.
    """
    if _is_interrupted:
        try:
            exec("raise KeyboardInterrupt")
        except KeyboardInterrupt:
            pass


_is_interrupted = False
_LAST = ("last_type", "last_value", "last_traceback", "last_exc")


def _write(text: str) -> None:
    try:
        sys.stderr.write(text)
    except Exception:
        # Closed, or replaced by something that cannot be written to: python too goes on silently.
        pass
