"""One row of a tree that is opened and closed.

blocks.0   ×12  f32[8,32,48] ← f32[8,32,48]  Block
  @        ×12  f32[8,4,32,32] ← f32[8,4,32,12], f32[8,4,12,32]

What came out stands first: a side bar is narrow, and cuts off what is on the right.
"""

from __future__ import annotations

from shapetrace.events.model import ModuleCall, Op
from shapetrace.views.call_text import (
    count_mark,
    count_text,
    error_text,
    filled_form,
    module_inputs,
    number_mark,
    outcome,
)
from shapetrace.views.labels import FAILED
from shapetrace.views.shapes import cut_end, holds_tensor, values_text
from shapetrace.views.styled import printable

_LONGEST = 200
"""Characters of a row: more than a side bar can show."""

_GAP = "  "


def module_label(call: ModuleCall, enclosing: ModuleCall | None) -> str:
    """The path of a module, without that of the module it was called in."""
    name = call.path
    if enclosing is not None and enclosing.path:
        name = name.removeprefix(f"{enclosing.path}.")
    return cut_end(printable(name or call.class_name), _LONGEST)


def module_row(call: ModuleCall, enclosing: ModuleCall | None) -> str:
    """Which call of a module it was, how often, what came out of what, its class."""
    return _row(
        [
            number_mark(call, enclosing),
            count_mark(call),
            _flow(call, module_inputs(call)),
            printable(call.class_name) if call.path else "",
        ]
    )


def op_label(op: Op) -> str:
    """The call without its tensors."""
    return cut_end(printable(op.label if op.level == "torch" else filled_form(op)), _LONGEST)


def op_row(op: Op, count: int) -> str:
    """How often an op was called, and what came out of what."""
    inputs = printable(values_text(op.inputs)) if op.level == "torch" else ""
    thread = "" if op.thread is None else f"thread {printable(op.thread)}"
    return _row([count_text(count), _flow(op, inputs), thread])


def searched_text(call: Op | ModuleCall) -> str:
    """All of a row that one might look for, in small letters."""
    place = (call.file or "").replace("\\", "/").rpartition("/")[2]
    if isinstance(call, ModuleCall):
        row, inputs = f"{call.path} {call.class_name}({call.detail})", module_inputs(call)
    else:
        row, inputs = f"{call.name} {call.label} {call.function}", values_text(call.inputs)
    error = f"{FAILED} {error_text(call)}" if call.error is not None else ""
    # Both ways, as hovers have it the other way round.
    return f"{row} {inputs} → {outcome(call)} ← {inputs} {place}:{call.line} {error}".lower()


def _flow(call: Op | ModuleCall, inputs: str) -> str:
    if call.error is not None:
        result = f"{FAILED} {error_text(call)}"
    elif not call.outputs and call.result is None:
        result = ""
    elif isinstance(call, Op) and not any(map(holds_tensor, call.outputs)):
        result = outcome(call) if call.outputs else ""
    else:
        result = outcome(call)
    return " ".join(filter(None, [result, f"← {inputs}" if inputs else ""]))


def _row(texts: list[str]) -> str:
    return cut_end(_GAP.join(filter(None, texts)), _LONGEST)
