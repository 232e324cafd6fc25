"""Which module calls a line of a document is about, one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shapetrace.events.model import ModuleCall
from shapetrace.server.file_records import Expression, Key
from shapetrace.server.processes import Process
from shapetrace.server.scope import module_of
from shapetrace.server.source_structure import Function
from shapetrace.server.store import TraceStore
from shapetrace.server.view import DocumentView


def calls_at(view: DocumentView, store: TraceStore, line: int) -> list[Key]:
    """The module calls to choose from at a line of the document, in the order they were made in.

    In a loop over layers these are the layers. Otherwise they are the calls for which the line ran,
    or, above the line with a function's name, the function.
    """
    records = view.records.base
    source_line = view.source_line(line)
    if source_line is None:
        return []
    function = view.structure.function_at(source_line)
    if function is not None and source_line <= function.node.lineno:
        return every_call_of(view, store, function)
    statement = view.structure.covering(source_line)
    expressions: list[Expression] = []
    if statement is not None:
        where = statement.range
        found = records.expressions(where.line, where.end_line)
        expressions = [each for each in found if where.contains(each.range)]
    for expression in expressions:
        if _is_loop(expression):
            # What is called in turn with modules, as ``torch.relu`` may be, is none to choose.
            return _modules_called_by(expression)
    around = _around(expressions)
    if not around and not expressions and function is not None:
        around = every_call_of(view, store, function) or _around(
            records.expressions(function.first, function.last)
        )
    if around:
        return around
    return sorted(key for each in expressions for key in _modules_called_by(each))


def calls_of(view: DocumentView, store: TraceStore, function: Function) -> dict[Key, ModuleCall]:
    """The module calls that a function ran for, of those that are shown."""
    return {
        key: call
        for key, call in view.records.module_calls(function.qualified_name).items()
        if _began_in(key, view, store, function)
    }


def every_call_of(view: DocumentView, store: TraceStore, function: Function) -> list[Key]:
    """All module calls of a function, in the order in which they were made."""
    calls = view.records.base.module_calls(function.qualified_name)
    return sorted(key for key in calls if _began_in(key, view, store, function))


def index_in(calls: list[Key], call: Key, store: TraceStore) -> list[int]:
    """Which of some calls a call is, or is made in; otherwise those that are made in it."""
    if call in calls:
        return [calls.index(call)]
    process = store.process(call[0])
    if process is None:
        return []
    around = set(process.nesting.above(call[1]))
    above = [
        index
        for index, (number, identity) in enumerate(calls)
        if number == call[0] and identity in around
    ]
    return above[-1:] or [
        index
        for index, each in enumerate(calls)
        if each[0] == call[0] and _is_in(each, call, process)
    ]


def step(calls: list[Key], pinned: Key | None, direction: int, store: TraceStore) -> Key | None:
    """The call before or behind the pinned one; at either end it stays the same."""
    if not calls:
        return None
    here = [] if pinned is None else index_in(calls, pinned, store)
    if not here:
        return calls[0] if direction > 0 else calls[-1]
    if len(here) > 1:
        return calls[here[0]] if direction > 0 else calls[here[-1]]
    return calls[min(max(here[0] + direction, 0), len(calls) - 1)]


def _is_in(call: Key, around: Key, process: Process) -> bool:
    return around[1] == 0 or around[1] in process.nesting.above(call[1])


def _began_in(key: Key, view: DocumentView, store: TraceStore, function: Function) -> bool:
    """Whether a module call began with a function: there may be two of one name in a file."""
    process = store.process(key[0])
    entry = None if process is None else process.entries.get(key[1])
    if entry is None:
        return False
    return function.first <= entry.line <= function.last


def _modules_called_by(expression: Expression) -> list[Key]:
    return sorted(
        key
        for key, call in expression.calls.items()
        if isinstance(call, ModuleCall) and call.direct
    )


def _is_loop(expression: Expression) -> bool:
    """Return whether one expression made several module calls in one call of its function."""
    seen: set[tuple[int, int | None]] = set()
    for key, call in expression.calls.items():
        if isinstance(call, ModuleCall) and call.direct:
            context = (key[0], call.parent)
            if context in seen:
                return True
            seen.add(context)
    return False


def _around(expressions: Iterable[Expression]) -> list[Key]:
    """The module calls that some expressions ran in."""

    def modules() -> Iterator[Key]:
        for expression in expressions:
            for key, call in expression.calls.items():
                module = module_of(call)
                if module is not None:
                    yield key[0], module

    return sorted(set(modules()))
