"""Read the rows of a recorder, which refer to each other by number.

The recorded program writes rows because that costs it little (see ``recorder.rows``). Here they are
read. ``row_columns.ROWS`` names the columns of each kind of row, for writer and reader. Numbers are
the sender's and are valid within one sequence of messages only; a number that is sent again has
another meaning from then on. A message also has ``run``, an object with the fields of a ``Run``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from shapetrace._errors import TraceFileError
from shapetrace.events import row_columns
from shapetrace.events.checks import (
    LARGEST,
    LIST,
    TEXT,
    Refused,
    check_items,
    check_path,
    check_place,
    check_type,
    read_each,
)
from shapetrace.events.fingerprint import CallFingerprints, Fingerprint
from shapetrace.events.model import (
    Coverage,
    ErrorInfo,
    Frame,
    ModuleCall,
    Op,
    Run,
    Tensor,
    Value,
    Variable,
)
from shapetrace.events.update import Source, Update
from shapetrace.events.value_rows import read_value

Row = Any
"""A JSON array."""

Read = TypeVar("Read")

_KNOWN_OPS: Final = row_columns.OP.known
_KINDS: Final = frozenset({"assignment", "parameter"})


class RowReader:
    """Makes events of the rows that one recorder sends, message by message."""

    def __init__(self) -> None:
        self._frames: dict[int, Frame] = {}
        self._stacks: dict[int, tuple[int, ...]] = {0: ()}
        self._values: dict[int, Value] = {}
        self._named: dict[tuple[int, str], Value] = {}
        self._parents: dict[int | None, int | None] = {None: None}
        """The id of the parent of each module call."""
        self._ops: set[int] = set()
        self._kernels: set[int] = set()
        self._with_kernels: set[int] = set()
        """The ids of ops that kernels ran for."""
        self._paths: set[str] = set()
        """Paths of files that were found to be such."""

    def read(self, message: Mapping[str, Any]) -> Update:
        """The events of one message. Raises ``TraceFileError`` for what no recorder sends."""
        update, refused = self.read_valid(message)
        if refused:
            raise TraceFileError(f"not rows of a recording: {refused[0]}")
        return update

    def read_valid(self, message: Mapping[str, Any]) -> tuple[Update, list[str]]:
        """The events of all rows that a recorder may have sent, and what is wrong with others.

        A row that refers to one that was refused is refused as well.
        """
        refused: list[str] = []

        def each(kind: str, read: Callable[[Row], Read]) -> list[Read]:
            return read_each(kind, read, message.get(kind, ()), refused)

        runs = read_each(
            "run", _run, () if message.get("run") is None else (message["run"],), refused
        )
        frames = each("frames", self._frame)
        each("stacks", self._stack)
        each("values", self._value)
        update = Update(
            run=runs[0] if runs else None,
            sources=tuple(each("sources", self._source)),
            frames=tuple(frames),
            modules=tuple(each("modules", self._module)),
            ops=tuple(each("ops", self._op)),
            variables=dict(each("variables", self._variable)),
            counts=dict(each("counts", self._count)),
            fingerprints=dict(each("fingerprints", self._fingerprints)),
            coverage=(
                None if message.get("coverage") is None else tuple(each("coverage", _coverage))
            ),
        )
        return update, refused

    def _frame(self, row: Row) -> Frame:
        row_columns.FRAME.check_closely(row)
        number, file, line, function, column, end_line, end_column = row
        check_place(line, column, end_line, end_column)
        self._check_path(file)
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

    def _stack(self, row: Row) -> None:
        row_columns.STACK.check(row)
        number, below, frame = row
        if number == 0:
            raise Refused("0 is the number of the empty stack")
        self._stacks[number] = (*self._stacks[below], self._frames[frame].id)

    def _value(self, row: Row) -> None:
        row_columns.VALUE.check(row)
        number, value = row
        if number in self._values:
            # The sender has begun again: the value with this number has a name elsewhere, too.
            self._named.clear()
        self._values[number] = read_value(value)

    def _source(self, row: Row) -> Source:
        row_columns.SOURCE.check(row)
        self._check_path(row[0])
        return Source(*row)

    def _check_path(self, path: str) -> None:
        if path not in self._paths:
            check_path("file", path)
            self._paths.add(path)

    def _named_value(self, number: int, name: str | None) -> Value:
        value = self._values[number]
        if name is None or not isinstance(value, Tensor):
            return value
        known = self._named.get((number, name))
        if known is None:
            check_type("a name", TEXT, name)
            known = self._named[number, name] = named(value, name)
        return known

    def _inputs(self, numbers: Row, names: Row) -> tuple[Value, ...]:
        names = names or ()
        return tuple(
            [
                self._named_value(number, names[index] if index < len(names) else None)
                for index, number in enumerate(numbers)
            ]
        )

    def _outputs(self, numbers: Row) -> tuple[Value, ...]:
        return tuple([self._values[number] for number in numbers])

    def _module(self, row: Row) -> ModuleCall:
        row_columns.MODULE.check(row)
        number, parent, path, class_name, detail, call, count, frame_number, stack = row[:9]
        inputs, names, keywords, result, outputs, parameters, error, note, direct = row[9:]
        frame = None if frame_number is None else self._frames[frame_number]
        if not 0 <= call < LARGEST or not 0 <= (count or 0) < LARGEST:
            raise Refused("it was called an impossible number of times")
        if not 0 <= parameters < LARGEST:
            raise Refused("it has an impossible number of parameters")
        check_items("keywords", TEXT, keywords)
        module = ModuleCall(
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
            error=None if error is None else _error(error),
            note=note,
            direct=direct,
        )
        self._note_module(number, parent)
        return module

    def _note_module(self, number: int, parent: int | None) -> None:
        """The module call around a module call comes first and does not change: no circles."""
        if number in self._ops or not 0 <= number < LARGEST:
            raise Refused("its number is that of an op, or of nothing")
        if parent == number or parent not in self._parents:
            raise Refused(f"it was made in {parent}, which is no module call")
        if self._parents.setdefault(number, parent) != parent:
            raise Refused("it was made in another module call before")

    def _op(self, row: Row) -> Op:
        # Of these there are many: that nearly all look alike is asked without a call.
        if tuple(map(type, row)) not in _KNOWN_OPS:
            row_columns.OP.check(row)
        # fmt: off
        (number, name, label, form, module, frame_number, direct, stack, inputs, names,
         result, outputs, count, level, parent, error, thread) = row
        # fmt: on
        if number in self._parents or not 0 <= number < LARGEST:
            raise Refused("its number is that of a module call, or of nothing")
        if not 0 <= count < LARGEST:
            raise Refused("it was called an impossible number of times")
        if module not in self._parents:
            raise Refused(f"it was made in {module}, which is no module call")
        if level != "torch" or parent is not None:
            self._check_kernel(number, level, parent)
        frame = self._frames[frame_number]
        tensors: Any = self._inputs(inputs, names)
        op = Op(
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
            error=None if error is None else _error(error),
            thread=thread,
        )
        self._ops.add(number)
        return op

    def _check_kernel(self, number: int, level: str, parent: int | None) -> None:
        """A kernel may come before the op that it ran for; that is no kernel itself."""
        if level != "aten":
            raise Refused("it is of no level, or no kernel and yet ran for another op")
        if number in self._with_kernels:
            raise Refused("other kernels ran for it")
        if parent is not None:
            if parent == number or parent in self._kernels or not 0 <= parent < LARGEST:
                raise Refused(f"it ran for {parent}, which is no op")
            self._with_kernels.add(parent)
        self._kernels.add(number)

    def _variable(self, row: Row) -> tuple[int, Variable]:
        row_columns.VARIABLE.check(row)
        number, name, file, line, column, end_line, end_column, function, module, value, kind = row
        check_place(line, column, end_line, end_column)
        self._check_path(file)
        if kind not in _KINDS:
            raise Refused("it is neither an assignment nor a parameter")
        return number, Variable(
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

    def _count(self, row: Row) -> tuple[int, int]:
        row_columns.COUNT.check(row)
        number, count = row
        self._check_known(number)
        if not 0 <= count < LARGEST:
            raise Refused("it was called an impossible number of times")
        return number, count

    def _fingerprints(self, row: Row) -> tuple[int, tuple[CallFingerprints, ...]]:
        row_columns.FINGERPRINTS.check_closely(row)
        self._check_known(row[0])
        return row[0], tuple(map(_calls, row[1]))

    def _check_known(self, number: int) -> None:
        if number not in self._ops and number not in self._parents:
            raise Refused(f"nothing was sent with number {number}")


def named(tensor: Tensor, name: str) -> Tensor:
    """Return a tensor with a name."""
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


def _error(row: Row) -> ErrorInfo:
    row_columns.ERROR.check(row)
    return ErrorInfo(*row)


def _coverage(row: Row) -> Coverage:
    row_columns.COVERAGE.check_closely(row)
    return Coverage(*row)


def _calls(row: Row) -> CallFingerprints:
    row_columns.CALLS.check_closely(row)
    first, last, outputs, inputs, digest = row
    return CallFingerprints(
        first,
        last,
        outputs=tuple(map(_fingerprint, outputs)),
        inputs=tuple(map(_fingerprint, inputs)),
        digest=digest,
    )


def _fingerprint(row: Row) -> Fingerprint:
    if type(row) not in LIST or not 7 <= len(row) <= len(row_columns.FINGERPRINT):
        raise Refused("a fingerprint has other fields")
    # Not how large they are: what a tensor holds may be of any size.
    if not all(
        type(each) in types for each, types in zip(row, row_columns.FINGERPRINT, strict=False)
    ):
        raise Refused("a fingerprint has a field of another type")
    dtype, count, mean, size, low, high, samples, *rest = row
    if not all(type(each) in row_columns.SAMPLE for each in samples):
        raise Refused("a sample is no number")
    return Fingerprint(dtype, count, mean, size, low, high, tuple(samples), *rest)


def _run(fields: Any) -> Run:
    check_type("it", (dict,), fields)
    for name, types in row_columns.RUN.items():
        check_type(name, types, fields.get(name))
    unknown = fields.keys() - row_columns.RUN.keys()
    if unknown:
        raise Refused(f"{min(unknown)} is no field of a run")
    check_items("argv", TEXT, fields["argv"])
    return Run(**{**fields, "argv": tuple(fields["argv"]), "files": {}})
