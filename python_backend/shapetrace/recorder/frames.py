"""Looking around on the program's stack without leaving anything there."""

from __future__ import annotations

import dis
import sys
from types import CodeType, FrameType
from typing import Any, Final
from weakref import ref

from shapetrace.recorder.callsite import Site

OPTIMIZED: Final = 0x01
"""The code flag of functions whose locals are fast; a module's or class's body has none."""

_SNAPSHOT_STAYS: Final = sys.version_info < (3, 13)
"""Until 3.13 reading a frame's locals leaves a dictionary behind that keeps the values alive."""
_FUNCTIONS: Final = frozenset({"locals", "vars", "dir", "eval", "exec"})
"""What a function that reads its own locals calls."""
_ATTRIBUTES: Final = frozenset({"locals", "f_locals"})
"""What it may ask another object for."""
_ENTRY: Final = dis.opmap["RESUME"]
_MOST_KNOWN: Final = 1024

_known_readers: Final[dict[int, tuple[ref[CodeType], bool]]] = {}
"""Whether functions that have such names read their own locals: ``model.eval()`` is none that does.
By identity, as hashing a code object takes long; the reference tells it from one that is gone."""


def frame_at(site: Site, frame: FrameType) -> FrameType | None:
    """The innermost frame around another that is at a site."""
    current = frame.f_back
    while current is not None:
        if current.f_code is site.activation.code and current.f_lasti == site.offset:
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
    return not (_SNAPSHOT_STAYS and _reads_locals(frame.f_code))


def _reads_locals(code: CodeType) -> bool:
    if _FUNCTIONS.isdisjoint(code.co_names) and _ATTRIBUTES.isdisjoint(code.co_names):
        return False
    known = _known_readers.get(id(code))
    if known is None or known[0]() is not code:
        if len(_known_readers) >= _MOST_KNOWN:
            _known_readers.clear()
        known = _known_readers[id(code)] = (ref(code), _loads_own_locals(code))
    return known[1]


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
    if sys.getrefcount(values) <= 4:
        values.clear()


def _may_be_traced(frame: FrameType) -> bool:
    """Whether a trace function may be looking at the frame just now.

    When it is done the interpreter stores the dictionary's values back into the locals. It has made
    the dictionary itself, so that what stays there is not because of us.
    """
    if frame.f_trace is not None or sys.getprofile() is not None:
        return True
    is_entered = sys.gettrace() is not None and frame.f_lasti >= 0
    return is_entered and frame.f_code.co_code[frame.f_lasti] == _ENTRY
