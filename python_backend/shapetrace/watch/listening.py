"""Who hears of the variables that are watched: as for ``var_tracker``, and of modules too."""

from __future__ import annotations

from types import CodeType, FrameType
from typing import Any, Final

from shapetrace.events.followed import FollowedValue
from shapetrace.instrument.interface import Listener
from shapetrace.instrument.modules import MODULE
from shapetrace.variables.listening import Followed, FunctionListener
from shapetrace.variables.outlets import Outlet, Outlets
from shapetrace.watch.missing import Place
from shapetrace.watch.wanted import Wanted

MODULE_FLAVOR: Final = "module"


def listener_for(
    place: Place, code: CodeType, wanted: tuple[Wanted, ...], outlet: Outlet
) -> Listener:
    """What hears of some variables of one function, or of a module, and tells an outlet."""
    names = {each.name.text: each.name for each in wanted}
    followed = tuple(Followed(name) for name in names.values())
    made = ModuleListener if place.function == MODULE else FunctionListener
    return made(code, place.function, place.line, followed, Outlets((outlet,)), False)


class ModuleListener(FunctionListener):
    """Listens to the statements of a module, which has no parameters: what it has are globals."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._flavor = MODULE_FLAVOR

    def _arguments(self, frame: FrameType, slots: Any) -> list[tuple[str, FollowedValue, bool]]:
        return []
