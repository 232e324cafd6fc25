"""Keeping the debugger out of the hooks of followed functions.

What these call of libraries is unseen: no step is to end there. The hooks themselves are passed
over: a step that comes back from a call would end once more on the line that has a hook behind it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from shapetrace.agent.hiding import hide_code, unseen
from shapetrace.instrument import Call, hooks, modules

_HOOKS: Final = (
    *(hooks.Site.enter, hooks.Site.look_at_one, hooks.Site.look_at_all),
    *(hooks.Site.return_, hooks.Site.generate, modules.GlobalSite.look_at_namespace),
    *(hooks.Leaving.__or__, hooks.Finishing.__or__, hooks.Forgetting.__or__),
    *(hooks.Bound.__contains__, hooks.Gate.__iter__, hooks.Token.__del__),
    Call.__new__,
)


def hide_hooks() -> None:
    """Each time that hooks were made: the debugger forgets it when it is configured."""
    for hook in _HOOKS:
        hide_code(hook.__code__)


def look_away(*owners: tuple[Any, Iterable[str]]) -> None:
    """Have the debugger look away while these functions run."""
    for owner, names in owners:
        for name in names:
            function = getattr(owner, name)
            if not hasattr(function, "__wrapped__"):
                setattr(owner, name, unseen(function))


look_away((hooks, ("_is_compiling",)))
