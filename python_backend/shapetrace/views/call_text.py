"""One op as text, in the words of its source: its operands and its result."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from shapetrace.events.model import ModuleCall, Op, Other, Tensor, Value
from shapetrace.views.shapes import CUT, result_text, tensor_text, value_text
from shapetrace.views.styled import cells, cut_to_cells, printable

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{(\d+)\}")
_KEYWORD = re.compile(r"([A-Za-z_]\w*)=\{(\d+)\}")
_LONE_PLACEHOLDER = re.compile(r"\{(\d+)\}\Z")

_OPERATORS = frozenset(
    operator + assigned
    for operator in ("+", "-", "*", "/", "//", "%", "@", "**", "&", "|", "^", "<<", ">>")
    for assigned in ("", "=")
) | {"==", "!=", "<", "<=", ">", ">="}

_NUMBERS = frozenset(("int", "float", "complex"))
"""A number in a form, whose value may differ from call to call."""

_TWO_SIDED_NAMES = frozenset(
    ("matmul", "mm", "bmm", "mv", "dot", "add", "sub", "mul", "div", "true_divide", "pow")
)


@dataclass(frozen=True, slots=True)
class Operand:
    """One thing that went into an op."""

    role: str
    """Left, Right, Input or Inputs; empty for all but the first of several inputs."""
    text: str
    argument: str | None = None
    """The parameter it was passed to, where the program named it."""
    name: str | None = None
    """The name of the value in the program."""
    traits: str = ""
    """Unusual properties of the tensor: its layout, its class."""


def filled_form(op: Op, write: Callable[[Tensor], str] = tensor_text) -> str:
    """The call with the shapes of its inputs in their places: ``cat([f32[2], f32[2]], dim=1)``."""
    form = printable(_fill(op.form, [write(tensor) for tensor in op.inputs]))
    return form if op.level == "torch" or form.startswith("aten.") else f"aten.{form}"


def operands(op: Op) -> list[Operand]:
    """The inputs of an op, each with the part it played."""
    sides = _sides(op)
    if sides is not None:
        return [_side(op, role, side) for role, side in zip(("Left", "Right"), sides, strict=True)]
    arguments = {int(index): name for name, index in _KEYWORD.findall(op.form)}
    first_role = "Input" if len(op.inputs) == 1 else "Inputs"
    return [
        _tensor_operand("" if index else first_role, tensor, arguments.get(index))
        for index, tensor in enumerate(op.inputs)
    ]


def outcome(call: Op | ModuleCall, length: int | None = None) -> str:
    """The return value of a call."""
    return printable(result_text(call.outputs, call.result, length))


def module_inputs(call: ModuleCall, room: int | None = None) -> str:
    """The arguments of a module call, named where there are several; absent ones are left out.

    Where there is no room for all, those that are no tensors give way first, and then the names.
    """
    given = [
        (call.input_names[position] if position < len(call.input_names) else "", value)
        for position, value in enumerate(call.inputs)
        if not (isinstance(value, Other) and value.text == "None")
    ]
    is_lone = len(given) == 1 and not isinstance(given[0][1], Other)
    text = ", ".join(_argument_text("" if is_lone else name, value) for name, value in given)
    if room is None or cells(text) <= room:
        return text
    tensors = [(name, value) for name, value in given if not isinstance(value, Other)]
    rest = [CUT] if len(tensors) < len(given) else []
    if tensors and not is_lone:
        text = ", ".join([*(_argument_text(name, value) for name, value in tensors), *rest])
        if cells(text) > room:
            text = ", ".join([*(_argument_text("", value) for _, value in tensors), *rest])
    return cut_to_cells(text, room)


def error_text(call: Op | ModuleCall) -> str:
    """``RuntimeError: mat1 and mat2 ...``: the first line of what ended a call."""
    if call.error is None:
        return ""
    message = next((line.strip() for line in call.error.message.splitlines() if line.strip()), "")
    return printable(f"{call.error.type}: {message}" if message else call.error.type)


def count_text(count: int) -> str:
    """``×12``; empty for a single call."""
    return "" if count == 1 else f"×{count}"


def total_calls(calls: Iterable[Op | ModuleCall]) -> int:
    """The number of calls that some events represent."""
    return sum(call.count or 1 for call in calls)


def module_marks(call: ModuleCall, enclosing: ModuleCall | None) -> str:
    """Which call of a module it was and how many like it there were: ``call 2  ×8``.

    A number that the enclosing call has as well is not repeated.
    """
    return "  ".join(filter(None, [number_mark(call, enclosing), count_mark(call)]))


def number_mark(call: ModuleCall, enclosing: ModuleCall | None) -> str:
    """``call 2``; empty for the first, and where the enclosing call has the same number."""
    is_told = call.call == 1 or (enclosing is not None and enclosing.call == call.call)
    return "" if is_told else f"call {call.call}"


def count_mark(call: ModuleCall) -> str:
    """``×8``, or that the calls were not counted; empty for a single call."""
    return "forward called directly" if call.count is None else count_text(call.count)


def module_title(call: ModuleCall) -> str:
    """``layers.0 (Block)``; the outermost module has only its class."""
    return printable(f"{call.path} ({call.class_name})" if call.path else call.class_name)


def _argument_text(name: str, value: Value) -> str:
    if not name or name.startswith("*"):
        return printable(value_text(value))
    mark = "=" if isinstance(value, Other) and value.text not in _NUMBERS else ": "
    return printable(f"{name}{mark}{value_text(value)}")


def _fill(form: str, texts: Sequence[str]) -> str:
    def replacement(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0][0]
        index = int(match[1])
        return texts[index] if index < len(texts) else match[0]

    return _PLACEHOLDER.sub(replacement, form)


def _sides(op: Op) -> tuple[str, str] | None:
    """The two sides of a binary operator, as parts of the op's form."""
    if op.label in _OPERATORS:
        left, found, right = op.form.partition(f" {op.label} ")
        if found:
            return left, right
        return ("{0}", "{1}") if len(op.inputs) == 2 else None
    name = op.name.rpartition(".")[2].rstrip("_")
    if name in _TWO_SIDED_NAMES and len(op.inputs) == 2:
        return "{0}", "{1}"
    return None


def _side(op: Op, role: str, side: str) -> Operand:
    lone = _LONE_PLACEHOLDER.match(side)
    if lone and int(lone[1]) < len(op.inputs):
        return _tensor_operand(role, op.inputs[int(lone[1])], None)
    return Operand(role, printable(_fill(side, [tensor_text(tensor) for tensor in op.inputs])))


def _tensor_operand(role: str, tensor: Tensor, argument: str | None) -> Operand:
    traits = [] if tensor.layout == "strided" else [tensor.layout]
    if tensor.placements:
        traits.append(f"{tensor.kind} {tensor.placements}")
    elif tensor.kind not in ("Tensor", "Parameter"):
        traits.append(tensor.kind)
    name = None if tensor.name is None else printable(tensor.name)
    return Operand(role, tensor_text(tensor), argument, name, printable(" ".join(traits)))
