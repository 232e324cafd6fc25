"""Several module calls in a few words, for one line above their code."""

from __future__ import annotations

from collections.abc import Sequence

from shapetrace.events.model import ModuleCall, Value
from shapetrace.views.labels import merged_text
from shapetrace.views.owners import CallInModule
from shapetrace.views.shapes import CUT, cut_end, holds_tensor, result_value
from shapetrace.views.summary import SEPARATOR, counted, human_number

_WIDTH = 60
"""Characters for what goes in, and as many for what comes out."""


def functions_summary(told: Sequence[CallInModule], title: str = "") -> str:
    """``12 calls · 2 modules · 7.1k parameters each · (f32[8,32,48]) → f32[8,32,48]``.

    A title stands before it, and says already that it is one call where it is no more than that.
    """
    calls = [each.call for each in told if isinstance(each.call, ModuleCall)]
    times = _calls_text(told)
    facts = [title, "" if title and times == counted(1, "call") else times]
    paths = {(call.path, call.class_name) for call in calls}
    if len(paths) > 1:
        facts.append(counted(len(paths), "module"))
    sizes = {call.parameters for call in calls}
    if len(sizes) == 1 and sizes != {0}:
        each = " each" if len(paths) > 1 else ""
        facts.append(f"{human_number(sizes.pop())} parameters{each}")
    facts.append(_flow(calls))
    return SEPARATOR.join(filter(None, facts))


def _calls_text(told: Sequence[CallInModule]) -> str:
    known = [each.count for each in told if each.count is not None]
    return counted(sum(known), "call") if known else "called directly"


def _flow(calls: Sequence[ModuleCall]) -> str:
    """``(x: f32[2,16], mask: bool[16]) → f32[2,10]``, of all calls together."""
    inputs: dict[str, list[Value]] = {}
    for call in calls:
        for position, value in enumerate(call.inputs):
            name = call.input_names[position] if position < len(call.input_names) else ""
            if holds_tensor(value):
                inputs.setdefault(name, []).append(value)
    texts: list[str] = []
    for name, values in inputs.items():
        text = merged_text(_distinct(values))
        text = text if len(inputs) == 1 else f"{name}: {text}"
        if texts and sum(map(len, texts)) + len(text) > _WIDTH:
            texts.append(CUT)
            break
        texts.append(cut_end(text, _WIDTH))
    outputs = [
        result_value(call.outputs, call.result)
        for call in calls
        if call.outputs or call.result is not None
    ]
    flow = f"({', '.join(texts)})"
    return f"{flow} → {merged_text(_distinct(outputs), _WIDTH)}" if outputs else flow


def _distinct(values: Sequence[Value]) -> tuple[Value, ...]:
    return tuple(dict.fromkeys(values))
