"""Code lenses: above a function that module calls ran, how often and with which shapes.

3 calls · 1.24M parameters · (f32[2,16]) → f32[2,10]
def forward(self, x):
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shapetrace.server.store import TraceStore
from shapetrace.server.structure import Function
from shapetrace.server.view import DocumentView
from shapetrace.views.stories import Told
from shapetrace.views.summaries import functions_summary


@dataclass(frozen=True, slots=True)
class Lens:
    """A text above a line of the document, counted from 0."""

    line: int
    text: str


def code_lenses(view: DocumentView, store: TraceStore) -> list[Lens]:
    """The lenses of a document."""
    lenses: list[Lens] = []
    entered = set(view.records.entered_functions)
    for function in view.structure.functions:
        now = view.document_line(function.node.lineno)
        if function.qualified_name not in entered or now is None:
            continue
        told = calls_of(view, store, function)
        if told:
            lenses.append(Lens(now, functions_summary(told)))
    return lenses


def calls_of(view: DocumentView, store: TraceStore, function: Function) -> list[Told]:
    """The module calls that a function ran for, where it is known to be this one."""
    told: list[Told] = []
    for (number, identity), call in view.records.module_calls(function.qualified_name).items():
        process = store.process(number)
        entry = None if process is None else process.entries.get(identity)
        # There may be two functions of one name in a file.
        if process is not None and entry is not None and _is_in(entry.line, function, view):
            told.append(Told(call, process.count(call)))
    return told


def _is_in(line: int, function: Function, view: DocumentView) -> bool:
    around: Sequence[Function] = [
        each for each in view.structure.functions if each.first <= line <= each.last
    ]
    return function in around
