"""Keeping the debugger out of the hooks of followed functions.

What these call of libraries is unseen: no step is to end there. The hooks themselves are passed
over: a step that comes back from a call would end once more on the line that has a hook behind it.
"""

from __future__ import annotations

from types import FunctionType
from typing import Final

from shapetrace.agent.hiding import hide_code, unseen
from shapetrace.instrument import Call, hooked_calls, hooks, module_rewriting

_HOLDERS: Final = [
    *(
        each
        for module in (hooks, hooked_calls)
        for each in vars(module).values()
        if getattr(each, "__module__", "") == module.__name__
    ),
    *(module_rewriting.GlobalSite, Call),
]
"""The classes in whose methods hooks run, and those that hooks make."""


def hide_hooks() -> None:
    """Each time that hooks were made: the debugger forgets it when it is configured."""
    for holder in _HOLDERS:
        for each in (holder, *vars(holder).values()):
            function = getattr(each, "__func__", each)  # of a static method
            if isinstance(function, FunctionType):
                hide_code(function.__code__)


# Once, as nothing else in the process does so.
hooks._is_compiling = unseen(hooks._is_compiling)
