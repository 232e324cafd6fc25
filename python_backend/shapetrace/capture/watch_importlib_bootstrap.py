"""Our frames on the program's stack while the model runs.

The file is named so on purpose: the ``warnings`` and ``logging`` modules pass over frames whose
file name contains both ``importlib`` and ``_bootstrap`` when they count ``stacklevel``, as they
must for the import system. Here that keeps every warning and log record at the place the program
meant.

Each frame takes itself out of the traceback of an exception that goes through it: a bare ``raise``
does not add the frame that raises, so it is enough to drop the entries there are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from sys import _getframe
from typing import Any, Protocol

from torch import compiler
from torch.compiler import is_dynamo_compiling

from shapetrace._asynchronous import clean
from shapetrace._dynamo import in_region
from shapetrace._exception_table import catching_everywhere


class CallListener(Protocol):
    """Is called at calls that are followed from the outside."""

    def begins(self, arguments: tuple[Any, ...], keywords: dict[str, Any], frame: int) -> Any:
        """A call begins, made by this frame of ours; the result is passed to ``ends``."""

    def ends(self, state: Any, result: Any) -> None:
        """The call has returned; may raise."""

    def fails(self, frame: int) -> None:
        """The call has raised, or a listener has at its beginning or end."""


class Wrapped:
    """A listener, each function of which is wrapped."""

    def __init__(self, listener: CallListener, wrapped: Callable[[Any], Any]) -> None:
        self.begins = wrapped(listener.begins)
        self.ends = wrapped(listener.ends)
        self.fails = wrapped(listener.fails)


def watched(original: Callable[..., Any], listeners: list[CallListener]) -> Any:
    """A stand-in for a class's function that reports each call to listeners."""

    @functools.wraps(original)
    @catching_everywhere
    def stand_in(*args: Any, **kwargs: Any) -> Any:
        try:
            if compiler._is_compiling_flag or is_dynamo_compiling():
                return original(*args, **kwargs)
            frame = id(_getframe())
            hearing = () if in_region() else tuple(listeners)
            try:
                states = [(each, each.begins(args, kwargs, frame)) for each in hearing]
                result = original(*args, **kwargs)
                for listener, state in reversed(states):
                    if state is not None:
                        listener.ends(state, result)
            except BaseException:
                for listener in reversed(hearing):
                    listener.fails(frame)
                raise
            return result
        except BaseException as error:
            clean(error)
            raise

    return stand_in


def inherited_call(kind: type) -> Callable[..., Any]:
    """The ``__call__`` that a class inherits, looked up at each call."""

    @catching_everywhere
    def __call__(*args: Any, **kwargs: Any) -> Any:  # noqa: N807 (a method)
        try:
            inherited: Any = super(kind, args[0])
            return inherited.__call__(*args[1:], **kwargs)
        except BaseException as error:
            clean(error)
            raise

    return __call__
