"""Functions that make a call in the name of the line that asked for it.

torch's C++ code gives a warning the place of the innermost Python frame. Under a mode that is the
mode's own, so the user would see our file, filters by module would miss, and "once per place" would
mean once for all places. A trampoline carries the file, the line and the globals of the caller, so
that the warning says what it says without us. Its frame never shows in a traceback; and as it does
not carry the caller's name, exported graphs do not list it among the frames of a ``forward``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType
from typing import Any, Final

from torch.nn import functional

from shapetrace._asynchronous import TRAMPOLINE_NAME
from shapetrace.recorder.callsite import Site

_TEMPLATE: Final = (lambda function, args, kwargs: function(*args, **kwargs)).__code__

_WARNS_FOR_CALLERS: Final = (functional.softmax, functional.softmin, functional.log_softmax)
"""Functions that are told how far out the place to warn about is."""

# The trampoline is the third frame out, and stands for the caller. What lies beyond that is further
# out by the function's first run, torch's hand-over and the caller itself.
_DEEPER_TEMPLATE: Final = (
    lambda function, args, kwargs: function(
        *args, **(kwargs | {"_stacklevel": (level := kwargs["_stacklevel"]) + 3 * (level > 3)})
    )
).__code__


MOST_LINES: Final = 2048
"""Lines that have one at a time. When there are more, all are made anew as they are needed."""


MOST_SITES: Final = 1 << 16


class Trampolines:
    """One trampoline for each line that makes torch calls."""

    def __init__(self, plain: Any, hide_code: Callable[[CodeType], bool] | None) -> None:
        self._plain = plain
        """Makes a call in nobody's name."""
        self._hide_code = hide_code
        """Keeps a debugger from stopping in one as if it were the line; False where it cannot."""
        self._made: dict[int, tuple[CodeType, FunctionType]] = {}
        """Each with the code it stands for, whose identity must not be another's."""
        self._sites: list[Site] = []
        """The sites that have been given one."""

    def give(self, site: Site, frame: FrameType, function: Any, for_good: bool) -> Any:
        """The trampoline for calling a function from the line a frame is at; kept ``for_good``.

        Where the globals are not those of a module, it is made anew for each call: nobody else may
        keep what is in them.
        """
        if len(self._made) >= MOST_LINES or len(self._sites) >= MOST_SITES:
            self.forget()
        deeper = any(function is each for each in _WARNS_FOR_CALLERS)
        line = frame.f_lineno or frame.f_code.co_firstlineno
        key = (id(frame.f_code) << 24 | line) << 1 | deeper
        code, names = frame.f_code, frame.f_globals
        made = self._made.get(key)
        if made is not None and made[1].__globals__ is names:
            trampoline = made[1]
        else:
            template = _DEEPER_TEMPLATE if deeper else _TEMPLATE
            named = template.replace(
                co_filename=code.co_filename,
                co_name=TRAMPOLINE_NAME,
                co_qualname=TRAMPOLINE_NAME,
                co_firstlineno=line,
            )
            if self._hide_code is not None and not self._hide_code(named):
                site.trampoline = self._plain if for_good else None
                return self._plain
            trampoline = FunctionType(named, names)
        if getattr(sys.modules.get(names.get("__name__", "")), "__dict__", None) is names:
            self._made[key] = (code, trampoline)
            if for_good:
                site.trampoline = trampoline
                self._sites.append(site)
        return trampoline

    def forget(self) -> None:
        """Let go of all of them, and with them of the program's globals."""
        for site in self._sites:
            site.trampoline = None
        self._sites.clear()
        self._made.clear()
