"""Keeping the debugger out of the hooks of functions that only our listeners follow.

What these call of libraries is unseen: no step is to end there. The hooks themselves are passed
over: a step that comes back from a call would end once more on the line that has a hook behind it.

Hooks that call a listener of the program's own are left alone. The debugger knows that a step out
of the program's callback is over by the return of the outermost frame of ours, which is the hook's.
"""

from __future__ import annotations

from types import FunctionType
from typing import Final

from shapetrace.agent.hiding import hide_code, unseen
from shapetrace.instrument import Call, hooked_calls, hooks, module_rewriting
from shapetrace.instrument.hidden_twins import hidden_twin

_TWINS: Final = (hooks.HookSite, hooks.Leaving, hooks.Finishing, module_rewriting.GlobalSite)
"""The classes whose hooks call listeners."""
_HOLDERS: Final = [
    *(
        each
        for module in (hooks, hooked_calls)
        for each in vars(module).values()
        if getattr(each, "__module__", "") == module.__name__
        and each not in (*_TWINS, hooks.CallEnding)
    ),
    *map(hidden_twin, _TWINS),
    Call,
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
