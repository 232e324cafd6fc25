"""Code lenses: above a function that module calls ran, how often and with which shapes.

3 calls · 1.24M parameters · (f32[2,16]) → f32[2,10]
def forward(self, x):

Where nothing was looked at, it says why.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from shapetrace.server.store import TraceStore
from shapetrace.server.structure import Function
from shapetrace.server.view import DocumentView
from shapetrace.views.remedies import with_remedy
from shapetrace.views.stories import Told
from shapetrace.views.summaries import functions_summary

_COMPILED = re.compile(r"OptimizedModule\[(\w+)\]")
"""How the recorder names a compiled module, of which only the class is known."""


@dataclass(frozen=True, slots=True)
class Lens:
    """A text above a line of the document, counted from 0."""

    line: int
    text: str


def code_lenses(view: DocumentView, store: TraceStore) -> list[Lens]:
    """The lenses of a document."""
    lenses: list[Lens] = []
    entered = set(view.records.entered_functions)
    unseen = _unseen(store, view.document.key)
    for function in view.structure.functions:
        now = view.document_line(function.node.lineno)
        if now is None:
            continue
        is_entered = function.qualified_name in entered
        told = calls_of(view, store, function) if is_entered else []
        if told:
            lenses.append(Lens(now, functions_summary(told)))
        elif function.qualified_name in unseen:
            reason = with_remedy(unseen[function.qualified_name])
            lenses.append(Lens(now, f"not looked at: {reason}"))
    return lenses


def _unseen(store: TraceStore, key: str) -> dict[str, str]:
    """By the names of functions, why they were not looked at although they ran."""
    found: dict[str, str] = {}
    for entry in store.coverage(key):
        compiled = _COMPILED.fullmatch(entry.where)
        if compiled is not None:
            found[f"{compiled[1]}.forward"] = entry.reason
    return found


def calls_of(view: DocumentView, store: TraceStore, function: Function) -> list[Told]:
    """The module calls that a function ran for, where it is known to be this one."""
    told: list[Told] = []
    for (number, identity), call in view.records.module_calls(function.qualified_name).items():
        process = store.process(number)
        entry = None if process is None else process.entries.get(identity)
        # There may be two functions of one name in a file.
        if process is not None and entry is not None and _is_in(entry.line, function, view):
            told.append(Told(call, process.count(call), process=process.label))
    return told


def _is_in(line: int, function: Function, view: DocumentView) -> bool:
    around: Sequence[Function] = [
        each for each in view.structure.functions if each.first <= line <= each.last
    ]
    return function in around
