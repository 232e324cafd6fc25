"""All that a trace says of a program, as text."""

from __future__ import annotations

from collections.abc import Iterator

from shapetrace.events.model import ModuleCall, Op, Trace, Variable
from shapetrace.views.shapes import value_text


def listing(trace: Trace, file: str) -> str:
    """The rows of a trace in their order, without what the machine and the versions put in."""
    frames = {frame.id: _place(frame, file) for frame in trace.frames}
    rows = [*_modules(trace, frames, file), *_ops(trace, frames, file), *_variables(trace, file)]
    return "".join(f"{row}\n" for row in rows)


def _modules(trace: Trace, frames: dict[int, str], file: str) -> Iterator[str]:
    for call in trace.modules:
        inputs = ", ".join(f"{_called(each)}{value_text(each)}" for each in call.inputs)
        yield (
            f"{call.id} module {call.path!r} {call.class_name}({inputs}) -> {_outputs(call)}"
            f"{_place(call, file)} ×{call.count}{_flags(call)}{_stack(call, frames)}"
        )


def _ops(trace: Trace, frames: dict[int, str], file: str) -> Iterator[str]:
    for op in trace.ops:
        inputs = ", ".join(f"{_called(each)}{value_text(each)}" for each in op.inputs)
        yield (
            f"{op.id} op {op.name} {op.label!r} {op.form!r} ({inputs}) -> {_outputs(op)}"
            f"{_place(op, file)} ×{op.count}{_flags(op)}{_stack(op, frames)}"
        )


def _variables(trace: Trace, file: str) -> Iterator[str]:
    for each in trace.variables:
        module = "" if each.module is None else f" in module {each.module}"
        yield f"{each.kind} {each.name} {value_text(each.tensor)}{_place(each, file)}{module}"


def _called(value: object) -> str:
    name = getattr(value, "name", None)
    return f"{name} " if name else ""


def _outputs(call: Op | ModuleCall) -> str:
    result = call.error.type if call.error else ", ".join(map(value_text, call.outputs))
    return result if call.result is None else f"{call.result}({result})"


def _flags(call: Op | ModuleCall) -> str:
    return "" if call.direct else " inside"


def _place(each: object, file: str) -> str:
    one: Variable | Op = each  # type: ignore[assignment]
    where = "" if one.file == file else " elsewhere"
    end = "" if one.end_line in (one.line, None) else f"{one.end_line}:"
    return f" at {one.line}:{one.column}-{end}{one.end_column} {one.function}{where}"


def _stack(call: Op | ModuleCall, frames: dict[int, str]) -> str:
    around = [frames[number].strip() for number in reversed(call.stack[:-1])]
    return "".join(f" <{each}" for each in around if not each.endswith("elsewhere"))
