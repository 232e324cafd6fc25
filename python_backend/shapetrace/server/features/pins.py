"""Labels of calls that can be pinned, and the calls that a line refers to."""

from __future__ import annotations

from collections.abc import Sequence

from shapetrace.events.model import ModuleCall
from shapetrace.server.features.trace_tree import node_id
from shapetrace.server.file_records import Key
from shapetrace.server.messages.calls import Pin
from shapetrace.server.processes import Process
from shapetrace.server.store import TraceStore
from shapetrace.views.outline import module_row
from shapetrace.views.styled import printable


def pin_of(store: TraceStore, key: Key) -> Pin | None:
    """A call by its numbers, or a process where that of the call is 0."""
    process = store.process(key[0])
    if process is None:
        return None
    if key[1] == 0:
        label = process.label
        return Pin(node_id(process, None), label, "")
    call = process.modules.get(key[1])
    if call is None:
        return None
    label = call_title(store, process, call)
    return Pin(node_id(process, call.id), label, module_row(call, call))


def call_title(store: TraceStore, process: Process, call: ModuleCall) -> str:
    """``blocks.6``; which call it was, and of which process, where there are several."""
    title = call.path or call.class_name
    if call.call != 1 or len(process.named.get((call.path, call.class_name), ())) > 1:
        title = f"{title} call {call.call}"
    return printable(" ".join(filter(None, [store.label(process), title])))


def module_call_of(store: TraceStore, key: Key) -> Key | None:
    """The module call to pin for a node: its own, or that around its op."""
    process = store.process(key[0])
    if process is None:
        return None
    if key[1] == 0 or key[1] in process.modules:
        return key
    above = (each for each in process.nesting.above(key[1]) if each in process.modules)
    module = next(above, None)
    return None if module is None else (key[0], module)


def nearest(store: TraceStore, keys: Sequence[Key], near: Key | None) -> Key | None:
    """Of some calls the one that has most in common with another; the first in doubt."""
    process = None if near is None else store.process(near[0])
    if near is None or process is None:
        return min(keys, default=None)
    chain = {near[1], *process.nesting.above(near[1])}

    def likeness(key: Key) -> tuple[int, int, int]:
        if key[0] != near[0]:
            return (0, -key[0], -key[1])
        common = len(chain.intersection((key[1], *process.nesting.above(key[1]))))
        return (1 + common, 0, -key[1])

    return max(keys, key=likeness, default=None)
