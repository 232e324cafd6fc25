"""Where a call was made: a trie of the functions that were running and the places they were at.

An *activation* is a function running for one caller: all its calls from the same place in the same
calling context share it. A *site* is an instruction of an activation. Both are found again with
dictionary look-ups, and the stack above a module call is never walked twice.
"""

from __future__ import annotations

import dis
import os
import runpy
import sys
import threading
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import overrides
from torch.nn import Module

from shapetrace._asynchronous import TRAMPOLINE_NAME
from shapetrace.recorder.debuggers import Debugger

if TYPE_CHECKING:
    from shapetrace.recorder.records import ModuleVariant, OpVariant

PROGRAM: Final = 0
"""Code of the program's own, which is all that does not lie in torch."""
TORCH: Final = 1
"""Code below torch's real install directory; ops made there are not the program's expressions."""
HIDDEN: Final = 2
"""Code between a call and the called function: torch's module call, our own frames."""
BOUNDARY: Final = 3
"""Our module call: what lies above it is known from the call in progress."""
FORWARD: Final = 4
"""A method called forward, which may have been called without going through the module's call."""
HANDLER: Final = 5
"""A ``__torch_function__`` of another mode (a device's too), which passes calls on to ours."""
DEBUGGER: Final = 6
"""Code of a debugger; what it calls is none of the program's doing."""
EVALUATION: Final = 7
"""Code that runs an expression in a stopped frame, as if it were the program's."""
TORCH_MODULE: Final = 8
"""A module of torch's while it is imported, which torch may do in the middle of any call."""

TORCH_DIRECTORY: Final = os.path.dirname(os.path.realpath(torch.__file__)) + os.sep
OWN_DIRECTORY: Final = os.path.dirname(os.path.dirname(os.path.realpath(__file__))) + os.sep

HANDLE_TORCH_FUNCTION: Final[CodeType] = overrides.handle_torch_function.__code__

CHOOSE: Final[CodeType] = torch.nn.functional.max_pool2d.__code__
"""The functions made by ``boolean_dispatch``: ``F.max_pool2d``, ``torch.unique``."""

CALL_IMPL: Final[CodeType] = Module._call_impl.__code__
"""torch's module call where there are no hooks, which is the frame that calls forward."""

_HIDDEN_CODES: Final = frozenset(
    {
        HANDLE_TORCH_FUNCTION,
        Module._call_impl.__code__,
        Module._wrapped_call_impl.__code__,
        *(part for part in Module._call_impl.__code__.co_consts if isinstance(part, CodeType)),
        threading.Thread.run.__code__,
        # What is private to Python's threads is not in its types.
        threading.Thread._bootstrap.__code__,  # type: ignore[attr-defined]
        threading.Thread._bootstrap_inner.__code__,  # type: ignore[attr-defined]
    }
)
_IMPORTING: Final = ("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>")
_HIDDEN_FILES: Final = ("<frozen runpy>", *_IMPORTING, runpy.__file__)


_CALLS_FROM_CACHES: Final = sys.version_info < (3, 13)
_CACHE: Final = 0
_SPECIALIZED: Final = frozenset(
    dis.opmap[name]
    for name in ("BINARY_SUBSCR", "FOR_ITER", "LOAD_ATTR", "SEND")
    if _CALLS_FROM_CACHES
)
_MOST_CODES: Final = 1 << 14
"""Code objects whose kind is remembered."""


class NotTheProgram(Exception):
    """A call was made by a debugger: to show or to test a value, in a console, for a condition.

    Or by torch, to fill the tables of a module that it imports.
    """


class CodeKinds:
    """Remembers what kind each code object is, by identity: hashing one takes long."""

    def __init__(self, debugger: Debugger | None = None) -> None:
        self._debugger = debugger
        self._kinds: dict[int, tuple[int, CodeType]] = {}
        self._marked: dict[int, tuple[int, CodeType]] = {}
        self._directories: dict[str, int] = {}

    def of(self, code: CodeType) -> int:
        """The kind of a code object."""
        known = self._kinds.get(id(code))
        if known is not None:
            return known[0]
        kind = self._classify(code)
        if len(self._kinds) >= _MOST_CODES:
            self._kinds = dict(self._marked)  # of a program that makes code all the time
        self._kinds[id(code)] = (kind, code)  # holding the code keeps its id from being reused
        return kind

    def mark(self, code: CodeType, kind: int) -> None:
        """Set the kind of one code object."""
        self._marked[id(code)] = self._kinds[id(code)] = (kind, code)

    def _classify(self, code: CodeType) -> int:
        if code.co_qualname == TRAMPOLINE_NAME:
            return HIDDEN
        if code in _HIDDEN_CODES or code.co_filename in _HIDDEN_FILES:
            return HIDDEN
        kind = self._directories.get(code.co_filename)
        if kind is None:
            path = os.path.realpath(code.co_filename)
            if path.startswith(TORCH_DIRECTORY):
                kind = TORCH
            elif self._debugger is not None and path.startswith(self._debugger.directories):
                kind = DEBUGGER
            else:
                kind = HIDDEN if path.startswith(OWN_DIRECTORY) else PROGRAM
            self._directories[code.co_filename] = kind
        if kind == DEBUGGER and self._debugger is not None:
            carries = self._debugger.carries(code.co_filename, code.co_name)
            return HIDDEN if carries else DEBUGGER
        if kind == HIDDEN:
            return HIDDEN
        if code.co_name == "forward" and code.co_argcount > 0:
            return FORWARD
        if code.co_name == "__torch_function__":
            return HANDLER
        if kind == TORCH and code.co_name == "<module>":
            return TORCH_MODULE
        return kind

    def is_torch(self, code: CodeType) -> bool:
        """Whether a code object lies in torch's install directory."""
        self.of(code)
        return self._directories.get(code.co_filename) == TORCH


def is_imported(frame: FrameType) -> bool:
    """Whether a module's frame is there because it is imported, and not run as a script."""
    caller = frame.f_back
    return caller is not None and caller.f_code.co_filename in _IMPORTING


def beginning_of(code: CodeType, offset: int) -> int:
    """Where an instruction begins that a frame is at, or what stands for it.

    Up to 3.12 an instruction that the interpreter has specialized runs a function of the program's
    from the end of its cache: properties, ``__getitem__``, the rounds of a generator. Until it is,
    and where it is something else's turn, it does so from its beginning. Calls always do from the
    end.
    """
    if not _CALLS_FROM_CACHES:
        return offset
    instructions = code.co_code
    if not 0 <= offset < len(instructions):
        return offset  # of another function, for what runs nowhere
    begins = offset
    while begins > 0 and instructions[begins] == _CACHE:
        begins -= 2
    return begins if instructions[begins] in _SPECIALIZED else offset


class Activation:
    """A function as it runs for one caller."""

    __slots__ = ("aliases", "caller", "code", "in_torch", "is_forward", "module", "sites")

    def __init__(
        self,
        code: CodeType,
        caller: Site | None,
        module: ModuleVariant | None,
        in_torch: bool,
        is_forward: bool = False,
    ) -> None:
        self.is_forward = is_forward
        """Whether it may run for several modules, when it is called directly."""
        self.code = code
        self.caller = caller
        """The site that called it; None at the bottom of the stack."""
        self.module = module
        """The module call it runs in."""
        self.in_torch = in_torch
        self.sites: dict[int, Site] = {}
        """By the offset of the instruction."""
        self.aliases: dict[int, Site] = {}
        """By other offsets at which a frame can be while it is at the instruction."""

    def site_at(self, offset: int) -> Site | None:
        """The site that a frame is at, if anything was called from there."""
        return self.sites.get(offset) or self.aliases.get(offset)


class Site:
    """An instruction of an activation, with what was called from it."""

    __slots__ = (
        "activation",
        "asks_for_truth",
        "called",
        "callees",
        "calls",
        "last",
        "modules",
        "offset",
        "trampoline",
        "variants",
    )

    def __init__(self, activation: Activation, offset: int) -> None:
        self.activation = activation
        self.offset = offset
        self.last: OpVariant | None = None
        """The op variant seen last, which the next call most often repeats."""
        self.called: ModuleVariant | None = None
        """The module variant called last."""
        self.variants: Any = None
        """All op variants of this site; made by ``records`` when there is more than one."""
        self.callees: dict[int, Activation] | None = None
        """By the id of the code called."""
        self.modules: Any = None
        """The modules called from here; made by ``modules`` when there is one."""
        self.trampoline: Any = None
        self.calls = 0
        """How many, as long as they are counted."""
        self.asks_for_truth = False
        """Whether a tensor was asked here if it is true, as ``max`` asks after comparing two."""


def api_caller(frame: FrameType, function: Any) -> FrameType:
    """The frame that called a Python-level torch function, from the one that handed it over.

    ``frame`` belongs to the body that called ``handle_torch_function``. Between it and the caller
    stand at most a few wrappers, the outermost of which is the public function itself.
    """
    code = getattr(function, "__code__", None)
    candidate: FrameType | None = frame
    outermost = frame
    for _ in range(4):
        if candidate is None:
            break
        if candidate.f_code is code or candidate.f_code is CHOOSE:
            outermost = candidate
            break
        candidate = candidate.f_back
    caller = outermost.f_back
    while caller is not None and caller.f_code is CHOOSE:
        caller = caller.f_back  # functions that choose between variants of themselves
    return caller or outermost


def user_site(site: Site) -> Site | None:
    """The innermost site in the program's own code, going outwards from ``site``."""
    current: Site | None = site
    while current is not None and current.activation.in_torch:
        current = current.activation.caller
    return current
