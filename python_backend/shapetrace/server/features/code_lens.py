"""Code lenses: above a function that module calls ran, how often and with which shapes.

3 calls · 1.24M parameters · (f32[2,16]) → f32[2,10] | pin a call
def forward(self, x):

Where one of several calls is shown, it is named, and one can go on to the next.

blocks.6 · 7 of 12 · 85k parameters · (f32[2,16]) → f32[2,10] | ◂ previous | next ▸ | unpin
def forward(self, x):

Where nothing was looked at, it says why.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from shapetrace.server.features.pins import pin_of
from shapetrace.server.line_calls import calls_of, every_call_of
from shapetrace.server.messages.document_places import DocumentPosition
from shapetrace.server.pin_and_focus import PinAndFocus
from shapetrace.server.source_structure import Function
from shapetrace.server.store import TraceStore
from shapetrace.server.view import DocumentView
from shapetrace.views.code_lens_text import functions_summary
from shapetrace.views.owners import CallInModule
from shapetrace.views.remedies import with_remedy
from shapetrace.views.summary import SEPARATOR

PIN_COMMAND: Final = "shapetrace.pinCall"
UNPIN_COMMAND: Final = "shapetrace.unpinCall"
PREVIOUS_COMMAND: Final = "shapetrace.previousCall"
NEXT_COMMAND: Final = "shapetrace.nextCall"
"""Commands of the extension, which take the position of the lens."""

_COMPILED = re.compile(r"OptimizedModule\[(\w+)\]")
"""How the recorder names a compiled module, of which only the class is known."""


@dataclass(frozen=True, slots=True)
class Lens:
    """A text above a line of the document, counted from 0."""

    line: int
    text: str
    command: str = ""
    """The command that a click runs, if any."""
    arguments: Sequence[DocumentPosition] | None = None


def code_lenses(
    view: DocumentView, store: TraceStore, scopes: PinAndFocus | None = None
) -> Iterator[Lens]:
    """The lenses of a document."""
    entered = set(view.records.entered_functions)
    unseen = _unseen(store, view.document.key)
    for function in view.structure.functions:
        now = view.document_line(function.node.lineno)
        if now is None:
            continue
        is_entered = function.qualified_name in entered
        told = told_of(view, store, function) if is_entered else []
        if told:
            yield from _of_calls(view, store, function, now, told, scopes)
        elif function.qualified_name in unseen:
            reason = with_remedy(unseen[function.qualified_name])
            yield Lens(now, f"not recorded: {reason}")


def _of_calls(
    view: DocumentView,
    store: TraceStore,
    function: Function,
    line: int,
    told: Sequence[CallInModule],
    scopes: PinAndFocus | None,
) -> Iterator[Lens]:
    """The title of the lens, and its commands if there were several calls."""
    every = every_call_of(view, store, function)
    shown = calls_of(view, store, function)
    where = [DocumentPosition(view.document.uri, line, 0)]
    is_one = len(shown) == 1 and len(every) > 1
    title = ""
    if is_one:
        (key,) = shown
        pin = pin_of(store, key)
        name = "" if pin is None else f"{pin.label}{SEPARATOR}"
        title = f"{name}{every.index(key) + 1} of {len(every)}"
    yield Lens(line, functions_summary(told, title))
    if is_one:
        yield Lens(line, "◂ previous", PREVIOUS_COMMAND, where)
        yield Lens(line, "next ▸", NEXT_COMMAND, where)
    if is_one and scopes is not None and scopes.is_pin_shown:
        yield Lens(line, "unpin", UNPIN_COMMAND)
    elif len(every) > 1:
        yield Lens(line, "pin a call", PIN_COMMAND, where)


def _unseen(store: TraceStore, key: str) -> dict[str, str]:
    """By the names of functions, the reason why they ran but were not recorded."""
    found: dict[str, str] = {}
    for entry in store.coverage(key):
        compiled = _COMPILED.fullmatch(entry.where)
        if compiled is not None:
            found[f"{compiled[1]}.forward"] = entry.reason
    return found


def told_of(view: DocumentView, store: TraceStore, function: Function) -> list[CallInModule]:
    """The module calls that a function ran for, where it is known to be this one."""
    told: list[CallInModule] = []
    for (number, _), call in calls_of(view, store, function).items():
        process = store.process(number)
        if process is not None:
            told.append(CallInModule(call, process.count(call), process=store.label(process)))
    return told
