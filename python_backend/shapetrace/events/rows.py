"""Reading what a recorder sends of itself: rows, which refer to each other by number.

The program that is recorded writes rows because that costs it little (see ``recorder.rows``);
whoever is interested makes events of them here. A row is a list whose items are named below in
their order. Numbers are the sender's and mean something within one sequence of messages only.

- ``run``: an object with the fields of a ``Run``
- ``sources``: path, digest, text
- ``frames``: number, file, line, function, column, end line, end column
- ``stacks``: number, number of the stack it stands on (0 for none), frame
- ``values``: number, value; a value is ``[0, shape, dtype, device, requires_grad, strides, kind,
  layout, placements]``, ``[1, kind, items, keys, length]`` or ``[2, text]``; a size that was a
  range is ``[low, high]``
- ``modules``: number, parent, path, class, detail, call, count, frame, stack, inputs, names of the
  inputs, keywords, result, outputs, parameters, error, note, direct
- ``ops``: number, name, label, form, module, frame, direct, stack, inputs, names, result, outputs,
  count, level, parent, error, thread
- ``variables``: number, name, file, line, column, end line, end column, function, module, value,
  kind
- ``counts``: number of an op or module, count
- ``fingerprints``: number of an op or module, its calls; of each the first and last number,
  outputs, inputs, digest; an output or input is the fields of a ``Fingerprint``
- ``coverage``: reason, where, count
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shapetrace._errors import TraceFileError
from shapetrace.events.fingerprint import CallFingerprints, Fingerprint
from shapetrace.events.model import (
    Container,
    Coverage,
    Dimension,
    DimensionRange,
    ErrorInfo,
    Frame,
    ModuleCall,
    Op,
    Other,
    Run,
    Tensor,
    Value,
    Variable,
)
from shapetrace.events.update import Source, Update

Row = Any
"""A JSON array."""


class RowReader:
    """Makes events of the rows that one recorder sends, message by message."""

    def __init__(self) -> None:
        self._frames: dict[int, Frame] = {}
        self._stacks: dict[int, tuple[int, ...]] = {0: ()}
        self._values: dict[int, Value] = {}
        self._named: dict[tuple[int, str], Value] = {}

    def read(self, message: Mapping[str, Any]) -> Update:
        """The events of one message. Raises ``TraceFileError`` for what no recorder sends."""
        try:
            return self._read(message)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise TraceFileError(f"not rows of a recording: {error!r}") from error

    def _read(self, message: Mapping[str, Any]) -> Update:
        frames = tuple(map(self._frame, message.get("frames", ())))
        for number, below, frame in message.get("stacks", ()):
            self._stacks[number] = (*self._stacks[below], frame)
        for number, value in message.get("values", ()):
            self._values[number] = read_value(value)
        run = message.get("run")
        coverage = message.get("coverage")
        return Update(
            run=None if run is None else _run(run),
            sources=tuple(Source(*row) for row in message.get("sources", ())),
            frames=frames,
            modules=tuple(map(self._module, message.get("modules", ()))),
            ops=tuple(map(self._op, message.get("ops", ()))),
            variables={row[0]: self._variable(row) for row in message.get("variables", ())},
            counts=dict(message.get("counts", ())),
            fingerprints={
                number: tuple(map(_calls, rows)) for number, rows in message.get("fingerprints", ())
            },
            coverage=None if coverage is None else tuple(Coverage(*row) for row in coverage),
        )

    def _frame(self, row: Row) -> Frame:
        number, file, line, function, column, end_line, end_column = row
        frame = Frame(
            id=number,
            file=file,
            line=line,
            function=function,
            column=column,
            end_line=end_line,
            end_column=end_column,
        )
        self._frames[number] = frame
        return frame

    def _named_value(self, number: int, name: str | None) -> Value:
        value = self._values[number]
        if name is None or not isinstance(value, Tensor):
            return value
        known = self._named.get((number, name))
        if known is None:
            known = self._named[number, name] = named(value, name)
        return known

    def _inputs(self, numbers: Row, names: Row) -> tuple[Value, ...]:
        names = names or ()
        return tuple(
            self._named_value(number, names[index] if index < len(names) else None)
            for index, number in enumerate(numbers)
        )

    def _outputs(self, numbers: Row) -> tuple[Value, ...]:
        return tuple(self._values[number] for number in numbers)

    def _module(self, row: Row) -> ModuleCall:
        number, parent, path, class_name, detail, call, count, frame_number, stack = row[:9]
        inputs, names, keywords, result, outputs, parameters, error, note, direct = row[9:]
        frame = None if frame_number is None else self._frames[frame_number]
        return ModuleCall(
            id=number,
            parent=parent,
            path=path,
            class_name=class_name,
            detail=detail,
            call=call,
            count=count,
            file=None if frame is None else frame.file,
            line=None if frame is None else frame.line,
            column=None if frame is None else frame.column,
            end_line=None if frame is None else frame.end_line,
            end_column=None if frame is None else frame.end_column,
            function=None if frame is None else frame.function,
            stack=self._stacks[stack],
            inputs=self._inputs(inputs, names),
            input_names=tuple(keywords),
            outputs=self._outputs(outputs),
            result=result,
            parameters=parameters,
            error=None if error is None else ErrorInfo(*error),
            note=note,
            direct=direct,
        )

    def _op(self, row: Row) -> Op:
        number, name, label, form, module, frame_number, direct, stack, inputs, names = row[:10]
        result, outputs, count, level, parent, error, thread = row[10:]
        frame = self._frames[frame_number]
        tensors: Any = self._inputs(inputs, names)
        return Op(
            id=number,
            name=name,
            label=label,
            form=form,
            module=module,
            function=frame.function,
            file=frame.file,
            line=frame.line,
            column=frame.column,
            end_line=frame.end_line,
            end_column=frame.end_column,
            direct=direct,
            stack=self._stacks[stack],
            inputs=tensors,
            outputs=self._outputs(outputs),
            result=result,
            count=count,
            level=level,
            parent=parent,
            error=None if error is None else ErrorInfo(*error),
            thread=thread,
        )

    def _variable(self, row: Row) -> Variable:
        _, name, file, line, column, end_line, end_column, function, module, value, kind = row
        return Variable(
            name=name,
            file=file,
            line=line,
            column=column,
            end_line=end_line,
            end_column=end_column,
            function=function,
            module=module,
            tensor=self._named_value(value, name),
            kind=kind,
        )


def named(tensor: Tensor, name: str) -> Tensor:
    """The same tensor by a name."""
    return Tensor(
        shape=tensor.shape,
        dtype=tensor.dtype,
        device=tensor.device,
        requires_grad=tensor.requires_grad,
        layout=tensor.layout,
        strides=tensor.strides,
        name=name,
        kind=tensor.kind,
        placements=tensor.placements,
    )


def read_value(row: Row) -> Value:
    """A value from its row."""
    match row[0]:
        case 0:
            _, shape, dtype, device, requires_grad, strides, kind, layout, placements = row
            return Tensor(
                shape=None if shape is None else tuple(map(_dimension, shape)),
                dtype=dtype,
                device=device,
                requires_grad=requires_grad,
                layout=layout,
                strides=None if strides is None else tuple(strides),
                kind=kind,
                placements=placements,
            )
        case 1:
            _, kind, items, keys, length = row
            names = None if keys is None else tuple(keys)
            return Container(kind, tuple(map(read_value, items)), names, length)
        case 2:
            return Other(row[1])
    raise ValueError(f"no value begins with {row[0]!r}")


def _dimension(size: Any) -> Dimension:
    return DimensionRange(*size) if isinstance(size, list | tuple) else size


def _calls(row: Row) -> CallFingerprints:
    first, last, outputs, inputs, digest = row
    return CallFingerprints(
        first,
        last,
        outputs=tuple(map(_fingerprint, outputs)),
        inputs=tuple(map(_fingerprint, inputs)),
        digest=digest,
    )


def _fingerprint(row: Row) -> Fingerprint:
    dtype, count, mean, size, low, high, samples, *rest = row
    return Fingerprint(dtype, count, mean, size, low, high, tuple(samples), *rest)


def _run(fields: Mapping[str, Any]) -> Run:
    return Run(**{**fields, "argv": tuple(fields["argv"]), "files": {}})
