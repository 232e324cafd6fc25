"""Functions that make a call in the name of the line that asked for it.

torch's C++ code gives a warning the place of the innermost Python frame. Under a mode that is the
mode's own, so the user would see our file, filters by module would miss, and "once per place" would
mean once for all places. A trampoline carries the file, line, function name and globals of the
caller, so that the warning says what it says without us. Its frame never shows in a traceback.
"""

from __future__ import annotations

from types import CodeType, FrameType, FunctionType
from typing import Any, Final

from torch.nn import functional

from shapetrace.recorder.callsite import HIDDEN, CodeKinds
from shapetrace.recorder.tracebacks import TRAMPOLINE_NAME

_TEMPLATE: Final = (lambda function, args, kwargs: function(*args, **kwargs)).__code__

_WARNS_FOR_CALLERS: Final = frozenset(
    {functional.softmax, functional.softmin, functional.log_softmax}
)
"""Functions that are told how far out the place to warn about is."""

# The trampoline is the third frame out, and stands for the caller. What lies beyond that is further
# out by the function's first run, torch's hand-over and the caller itself.
_DEEPER_TEMPLATE: Final = (
    lambda function, args, kwargs: function(
        *args, **(kwargs | {"_stacklevel": (level := kwargs["_stacklevel"]) + 3 * (level > 3)})
    )
).__code__


class Trampolines:
    """One trampoline for each line that made a torch call."""

    def __init__(self, kinds: CodeKinds) -> None:
        self._kinds = kinds
        self._made: dict[tuple[int, int, CodeType], tuple[CodeType, Any]] = {}

    def at(self, frame: FrameType, function: Any) -> Any:
        """The trampoline for calling a function from the line a frame is at."""
        template = _DEEPER_TEMPLATE if function in _WARNS_FOR_CALLERS else _TEMPLATE
        line = frame.f_lineno or frame.f_code.co_firstlineno
        key = (id(frame.f_code), line, template)
        known = self._made.get(key)
        if known is not None:
            return known[1]
        code = template.replace(
            co_filename=frame.f_code.co_filename,
            co_name=frame.f_code.co_name,
            co_qualname=TRAMPOLINE_NAME,
            co_firstlineno=line,
        )
        self._kinds.mark(code, HIDDEN)
        trampoline = FunctionType(code, frame.f_globals)
        self._made[key] = (frame.f_code, trampoline)
        return trampoline

    def forget(self) -> None:
        """Let go of the program's globals."""
        self._made.clear()
