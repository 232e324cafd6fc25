"""The frames of ours at the bottom of threads and of backward passes.

The file is named, and its frames take themselves out of tracebacks, for the same reasons as in
``watch_importlib_bootstrap``.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

from shapetrace._exception_table import catching_everywhere
from shapetrace.recorder.tracebacks import clean, take_out_our_frames
from shapetrace.recorder.watch_importlib_bootstrap import Running, put_back


def make_thread_main(original: Any, running: Running) -> Any:
    """A stand-in for ``Thread._bootstrap_inner`` that has the thread watched from its start."""

    @catching_everywhere
    def _bootstrap_inner(thread: threading.Thread) -> None:
        try:
            recorder = running.recorder
            if recorder is None or getattr(thread, "pydev_do_not_trace", False):
                original(thread)
                return
            state = None
            try:
                try:
                    state = recorder.adopt_thread(None, started=thread)
                except BaseException as error:
                    if not recorder.swallows(error):
                        raise
                _have_errors_cleaned(thread)
                original(thread)
            finally:
                if state is not None:
                    put_back(recorder, recorder.release_thread, state, True)
        except BaseException as error:
            clean(error)
            raise

    return _bootstrap_inner


def _have_errors_cleaned(thread: threading.Thread) -> None:
    """Have what ends a thread shown without what it went through because of us."""
    internals: Any = thread
    show = getattr(internals, "_invoke_excepthook", None)
    if show is None:
        return

    def invoke_excepthook(*arguments: Any) -> None:
        error = sys.exc_info()[1]
        try:
            if error is not None:
                take_out_our_frames(error)
        except RecursionError:
            pass  # no room
        finally:
            del error
            show(*arguments)

    internals._invoke_excepthook = invoke_excepthook


def make_engine_run(original: Any, running: Running) -> Any:
    """A stand-in for autograd's engine that has the program's own code in it watched.

    ``Tensor.backward`` is itself a call the function mode sees, so the mode is off inside it; yet
    hooks, custom backwards and checkpoints run there.
    """

    @catching_everywhere
    def _engine_run_backward(*args: Any, **kwargs: Any) -> Any:
        try:
            recorder = running.recorder
            again = None
            try:
                try:
                    again = None if recorder is None else recorder.modes_again()
                except BaseException as error:
                    if recorder is None or not recorder.swallows(error):
                        raise
                return original(*args, **kwargs)
            finally:
                if recorder is not None and again is not None:
                    put_back(recorder, again)
        except BaseException as error:
            take_out_our_frames(error)
            raise

    return _engine_run_backward
