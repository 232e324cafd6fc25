"""Looking around on the program's stack without leaving anything there."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, Final
from weakref import ref

from shapetrace.recorder.callsite import Site

OPTIMIZED: Final = 0x01
"""The code flag of functions whose locals are fast; a module's or class's body has none."""

_SNAPSHOT_STAYS: Final = sys.version_info < (3, 13)
"""Until 3.13 reading a frame's locals leaves a dictionary behind that keeps the values alive."""
_MONITORING: Final[Any] = getattr(sys, "monitoring", None)
"""How debuggers follow a program from 3.12 on."""
_CELLS_CRASH: Final = (3, 13) <= sys.version_info < (3, 13, 3)
"""Where reading a variable ends the process if a comprehension has one of the name and a function
inside another one (python/cpython#128396)."""
_FUNCTIONS: Final = frozenset({"locals", "vars", "dir", "eval", "exec"})
"""What a function that reads its own locals calls."""
_ATTRIBUTES: Final = frozenset({"locals", "f_locals"})
"""What it may ask another object for."""
_ENTRY: Final = dis.opmap["RESUME"]
_MOST_KNOWN: Final = 1024

_known_codes: Final[dict[int, tuple[ref[CodeType], bool]]] = {}
"""Whether the locals of functions that may be so cannot be read: those that read their own, and
not just have such names (``model.eval()``), or where it would end the process. By identity, as
hashing a code object takes long; the reference tells it from one that is gone."""


def frame_at(site: Site, frame: FrameType) -> FrameType | None:
    """The innermost frame around another that is at a site."""
    current = frame.f_back
    while current is not None:
        activation = site.activation
        if current.f_code is activation.code and activation.site_at(current.f_lasti) is site:
            return current
        current = current.f_back
    return None


def read_locals(frame: FrameType) -> Any:
    """The locals of a running function; nothing where the function reads them itself.

    Until 3.13 all who read them get the same dictionary: what the program was given by ``locals()``
    would change under its hands.
    """
    return frame.f_locals if is_readable(frame) else {}


def is_readable(frame: FrameType) -> bool:
    """Whether the locals of a running function can be looked at without a trace."""
    code = frame.f_code
    if _SNAPSHOT_STAYS:
        may_be_reader = not (
            _FUNCTIONS.isdisjoint(code.co_names) and _ATTRIBUTES.isdisjoint(code.co_names)
        )
        return not may_be_reader or not _is_known(code, _loads_own_locals)
    if _CELLS_CRASH and (code.co_cellvars or code.co_freevars):
        return not _is_known(code, _has_cells_set_aside)
    return True


def _is_known(code: CodeType, find_out: Callable[[CodeType], bool]) -> bool:
    """What is so of a function's code, found out once."""
    known = _known_codes.get(id(code))
    if known is None or known[0]() is not code:
        if len(_known_codes) >= _MOST_KNOWN:
            _known_codes.clear()
        known = _known_codes[id(code)] = (ref(code), find_out(code))
    return known[1]


def _has_cells_set_aside(code: CodeType) -> bool:
    """Whether a variable is a function's inside, and one of a comprehension, too."""
    cells = {*code.co_cellvars, *code.co_freevars}
    return any(
        each.argval in cells
        for each in dis.get_instructions(code)
        if each.opname == "LOAD_FAST_AND_CLEAR"
    )


def _loads_own_locals(code: CodeType) -> bool:
    loads = [each for each in dis.get_instructions(code) if each.opname.startswith("LOAD_")]
    return any(
        each.argval in (_FUNCTIONS if each.opname.endswith(("GLOBAL", "NAME")) else _ATTRIBUTES)
        for each in loads
        if type(each.argval) is str
    )


def forget_locals(frame: FrameType, values: Any) -> None:
    """Let go of the values that reading a function's locals copied into its frame."""
    if not _SNAPSHOT_STAYS or not frame.f_code.co_flags & OPTIMIZED or _may_be_traced(frame):
        return
    # Referred to by the frame, by our caller, here, and by the question itself.
    if sys.getrefcount(values) > 4:
        return
    if not _is_followed_by_events():
        values.clear()
        return
    # What a debugger's user has put there is in this dictionary alone.
    code = frame.f_code
    for name in {*code.co_varnames, *code.co_cellvars, *code.co_freevars} & values.keys():
        del values[name]


def _is_followed_by_events() -> bool:
    """Whether a debugger stops in frames that have no trace function, as it can from 3.12 on."""
    return _MONITORING is not None and _MONITORING.get_tool(_MONITORING.DEBUGGER_ID) is not None


def _may_be_traced(frame: FrameType) -> bool:
    """Whether a trace function may be looking at the frame just now.

    When it is done the interpreter stores the dictionary's values back into the locals. It has made
    the dictionary itself, so that what stays there is not because of us.
    """
    if frame.f_trace is not None or sys.getprofile() is not None:
        return True
    is_entered = sys.gettrace() is not None and frame.f_lasti >= 0
    return is_entered and frame.f_code.co_code[frame.f_lasti] == _ENTRY
