"""Makes listeners for watched variables: as for ``var_tracker``, and for modules too."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any, Final

from shapetrace.instrument.interface import Listener
from shapetrace.instrument.module_rewriting import MODULE
from shapetrace.variables.outlets import Outlet, Outlets
from shapetrace.variables.variable_listener import Followed, VariableListener
from shapetrace.watch.unseen_names import Place
from shapetrace.watch.wanted import Wanted

MODULE_FLAVOR: Final = "module"


def listener_for(
    place: Place,
    code: CodeType,
    wanted: tuple[Wanted, ...],
    outlet: Outlet,
    unseen: Callable[[Any], Any] | None = None,
) -> Listener:
    """A listener that reports variables of one function, or of a module, to an outlet.

    ``unseen`` wraps its functions, so that a debugger does not stop in them.
    """
    names = {each.name.text: each.name for each in wanted}
    followed = tuple(Followed(name) for name in names.values())
    flavor = MODULE_FLAVOR if place.function == MODULE else None
    outlets = Outlets((outlet,))
    return VariableListener(
        code, place.function, place.line, followed, outlets, False, flavor, unseen
    )
