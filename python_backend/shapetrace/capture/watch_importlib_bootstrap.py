"""The frames of ours that stand on the program's stack while the model runs.

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
from typing import Any, Protocol

from torch import compiler
from torch.compiler import is_dynamo_compiling


class CallListener(Protocol):
    """Hears of calls from the outside."""

    def begins(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """A call is about to be made; what is returned is given back below."""

    def ends(self, state: Any, result: Any) -> None:
        """It has returned; may raise."""

    def fails(self, state: Any) -> None:
        """It has raised."""


def watched(original: Callable[..., Any], listeners: list[CallListener]) -> Any:
    """A stand-in for a function of a class that tells of each call, from the outside in."""

    @functools.wraps(original)
    def stand_in(*args: Any, **kwargs: Any) -> Any:
        if compiler._is_compiling_flag or is_dynamo_compiling():
            return original(*args, **kwargs)
        states = [(listener, listener.begins(args, kwargs)) for listener in tuple(listeners)]
        try:
            result = original(*args, **kwargs)
        except BaseException as error:
            if error.__traceback__ is not None:
                error.__traceback__ = error.__traceback__.tb_next
            for listener, state in reversed(states):
                if state is not None:
                    listener.fails(state)
            raise
        for listener, state in reversed(states):
            if state is not None:
                listener.ends(state, result)
        return result

    return stand_in


def inherited_call(kind: type) -> Callable[..., Any]:
    """``__call__`` as a class has it from those before it, whichever that is when it is called."""

    def __call__(*args: Any, **kwargs: Any) -> Any:  # noqa: N807 (a method)
        try:
            inherited: Any = super(kind, args[0])
            return inherited.__call__(*args[1:], **kwargs)
        except BaseException as error:
            if error.__traceback__ is not None:
                error.__traceback__ = error.__traceback__.tb_next
            raise

    return __call__
