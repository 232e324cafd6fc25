"""What a recording has seen so far, as events."""

from __future__ import annotations

import datetime
import hashlib
import os
import platform
import sys
from types import CodeType
from typing import TYPE_CHECKING, Any

import torch

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
    Trace,
    Value,
    Variable,
)
from shapetrace.recorder.callsite import Site, user_site
from shapetrace.recorder.describe import (
    CONTAINER,
    OTHER,
    Raw,
    holds_tensor,
    is_return_type,
    item_of,
)
from shapetrace.recorder.naming import form_of, label_of, public_name
from shapetrace.recorder.positions import Position, Positions
from shapetrace.recorder.records import ERROR, KernelVariant, ModuleVariant, OpVariant, Range

if TYPE_CHECKING:
    from shapetrace.recorder.session import Recorder


def take_snapshot(recorder: Recorder) -> Trace:
    """Everything a recorder holds, as one trace. May be called while the recording goes on."""
    return _Snapshot(recorder).trace()


class _Snapshot:
    """Turns variants into events; numbers frames as they are needed."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._positions = Positions()
        self._worth = recorder.worth
        self._frames: dict[tuple[int, int], Frame] = {}
        self._stacks: dict[int, tuple[int, ...]] = {}
        self._tensors: dict[Any, Tensor] = {}
        self._files: set[str] = set()

    def trace(self) -> Trace:
        recorder = self._recorder
        modules = tuple(map(self._module, list(recorder.modules)))
        ops = [self._op(variant) for variant in list(recorder.ops) if variant.count]
        ops += [self._kernel(variant) for variant in list(recorder.kernels) if variant.count]
        ops.sort(key=lambda op: op.id)
        variables = tuple(self._all_variables())
        return Trace(
            run=self._run(),
            modules=modules,
            ops=tuple(ops),
            frames=tuple(self._frames.values()),
            variables=variables,
            coverage=self._coverage(),
        )

    # Places

    def _frame(self, site: Site) -> Frame:
        code = site.activation.code
        key = (id(code), site.offset)
        known = self._frames.get(key)
        if known is None:
            line, end_line, column, end_column = self._positions.at(code, site.offset)
            known = self._frames[key] = Frame(
                id=len(self._frames) + 1,
                file=self._file(code),
                line=line,
                function=code.co_qualname,
                column=column,
                end_line=end_line,
                end_column=end_column,
            )
        return known

    def _file(self, code: CodeType) -> str:
        name = code.co_filename
        path = name if name.startswith("<") else os.path.abspath(name)
        self._files.add(path)
        return path

    def _stack(self, site: Site | None) -> tuple[int, ...]:
        """The program's frames from the outermost one to this site."""
        if site is None:
            return ()
        known = self._stacks.get(id(site))
        if known is not None:
            return known
        frames: list[int] = []
        current: Site | None = site
        while current is not None:
            if not current.activation.in_torch:
                frames.append(self._frame(current).id)
            current = current.activation.caller
        stack = self._stacks[id(site)] = tuple(reversed(frames))
        return stack

    # Values

    def tensor(self, raw: Raw, name: str | None = None) -> Tensor:
        """A raw tensor as an event value."""
        key = (raw, name)
        try:
            known = self._tensors.get(key)
        except TypeError:
            return _tensor(raw, name)
        if known is None:
            known = self._tensors[key] = _tensor(raw, name)
        return known

    def value(self, raw: Raw, name: str | None = None) -> Value:
        """A raw value as an event value."""
        if raw[0] is OTHER:
            return Other(raw[1])
        if raw[0] is CONTAINER:
            _, kind, keys, items, length = raw
            return Container(kind, tuple(map(self.value, items)), keys, length)
        return self.tensor(raw, name)

    def _outputs(self, raw: Raw | None) -> tuple[tuple[Value, ...], str | None]:
        if raw is None or raw[0] is ERROR:
            return (), None
        if raw[0] is CONTAINER and raw[2] is None and raw[1] in ("tuple", "list", "Size"):
            return tuple(map(self.value, raw[3])), raw[1]
        if raw[0] is CONTAINER and raw[2] is not None and raw[1] not in ("dict", "OrderedDict"):
            value = self.value(raw)
            if isinstance(value, Container) and is_return_type(raw):
                return value.items, raw[1]
            return (value,), None
        return (self.value(raw),), None

    # Events

    def _module(self, variant: ModuleVariant) -> ModuleCall:
        record = variant.record
        site = record.site
        place = user_site(site)
        frame = None if place is None else self._frame(place)
        names = variant.names or ()
        inputs = tuple(self._named(raw, names, index) for index, raw in enumerate(variant.inputs))
        outputs, result = self._outputs(variant.output)
        return ModuleCall(
            id=variant.id,
            parent=None if variant.parent is None else variant.parent.id,
            path=record.path,
            class_name=record.class_name,
            detail=record.detail,
            call=variant.call,
            count=None if variant.implicit else variant.count,
            file=None if frame is None else frame.file,
            line=None if frame is None else frame.line,
            column=None if frame is None else frame.column,
            end_line=None if frame is None else frame.end_line,
            end_column=None if frame is None else frame.end_column,
            function=None if frame is None else frame.function,
            stack=self._stack(site),
            inputs=inputs,
            input_names=_input_names(variant),
            outputs=outputs,
            result=result,
            parameters=record.parameters,
            error=_error(None if variant.error is None else (ERROR, *variant.error)),
            note=variant.note,
            direct=self._worth.is_direct(variant),
        )

    def _named(self, raw: Raw, names: tuple[str | None, ...], index: int) -> Value:
        return self.value(raw, names[index] if index < len(names) else None)

    def _op(self, variant: OpVariant) -> Op:
        site = variant.site
        place = user_site(site) or site
        frame = self._frame(place)
        direct = self._worth.is_direct(variant)
        in_program = not site.activation.in_torch
        operator = (
            self._positions.operator(site.activation.code, site.offset) if in_program else None
        )
        names = variant.names or (None,) * len(variant.inputs)
        outputs, result = self._outputs(variant.output)
        module = site.activation.module
        return Op(
            id=variant.id,
            name=public_name(variant.function),
            label=label_of(variant.function, variant.arguments, operator),
            form=form_of(
                variant.function,
                variant.arguments,
                operator,
                operator is not None
                and self._worth.callees.begins_with_constant(site.activation.code, site.offset),
            ),
            module=None if module is None else module.id,
            function=frame.function,
            file=frame.file,
            line=frame.line,
            column=frame.column,
            end_line=frame.end_line,
            end_column=frame.end_column,
            direct=direct,
            stack=self._stack(site),
            inputs=tuple(map(self.tensor, variant.inputs, names)),
            outputs=outputs,
            result=result,
            count=variant.count,
            error=_error(variant.output),
            thread=variant.thread,
        )

    def _kernel(self, variant: KernelVariant) -> Op:
        site = variant.site
        frame = self._frame(user_site(site) or site)
        outputs, result = self._outputs(variant.output)
        module = site.activation.module
        return Op(
            id=variant.id,
            name=public_name(variant.function),
            label=label_of(variant.function, variant.arguments, None),
            form=form_of(variant.function, variant.arguments, None),
            module=None if module is None else module.id,
            function=frame.function,
            file=frame.file,
            line=frame.line,
            column=frame.column,
            end_line=frame.end_line,
            end_column=frame.end_column,
            direct=False,
            stack=self._stack(site),
            inputs=tuple(map(self.tensor, variant.inputs)),
            outputs=outputs,
            result=result,
            count=variant.count,
            level="aten",
            parent=None if variant.parent is None else variant.parent.id,
            error=_error(variant.output),
        )

    def _all_variables(self) -> list[Variable]:
        """Each variable once, whether it was read from a function's locals or known from a call."""
        found: dict[Any, Variable] = {}
        for variable in (*self._assigned_variables(), *self._variables()):
            place = (variable.file, variable.line, variable.column, variable.name, variable.module)
            found.setdefault((*place, variable.tensor), variable)
        return list(found.values())

    def _variables(self) -> list[Variable]:
        """What was read from the locals of functions."""
        events = []
        for note in list(self._recorder.variables):
            activation = note.activation
            code = activation.code
            if note.offset is None:
                position: Position = (code.co_firstlineno, None, None, None)
            else:
                position = self._positions.at(code, note.offset)
            events.append(
                self._variable(activation, note.name, position, note.raw, note.offset is None)
            )
        return events

    def _assigned_variables(self) -> list[Variable]:
        """What was stored straight from a call whose value is known."""
        events: list[Variable] = []
        seen: set[Any] = set()
        calls: list[OpVariant | ModuleVariant] = [*self._recorder.ops, *self._recorder.modules]
        for call in calls:
            site = call.site
            if call.output is None or call.output[0] is ERROR or not self._worth.is_direct(call):
                continue
            if isinstance(call, ModuleVariant) and call.implicit:
                continue
            code = site.activation.code
            for name, offset, path in self._worth.targets.of(code, site.offset):
                raw = item_of(call.output, path)
                if raw is None or not holds_tensor(raw):
                    continue
                key = (id(site.activation), name, offset, raw)
                try:
                    if key in seen:
                        continue
                    seen.add(key)
                except TypeError:
                    pass
                position = self._positions.at(code, offset)
                events.append(self._variable(site.activation, name, position, raw, False))
        return events

    def _variable(
        self, activation: Any, name: str, position: Any, raw: Raw, is_parameter: bool
    ) -> Variable:
        line, end_line, column, end_column = position
        return Variable(
            name=name,
            file=self._file(activation.code),
            line=line,
            column=column,
            end_line=end_line,
            end_column=end_column,
            function=activation.code.co_qualname,
            module=None if activation.module is None else activation.module.id,
            tensor=self.value(raw, name),
            kind="parameter" if is_parameter else "assignment",
        )

    def _coverage(self) -> tuple[Coverage, ...]:
        recorder = self._recorder
        notes = [
            Coverage(reason, where, count) for (reason, where), count in recorder.notes.items()
        ]
        if recorder.rest.missed:
            where = f"not looked at since pass {recorder.rest.slept_at}"
            notes.append(Coverage("settled", where, recorder.rest.missed))
        return tuple(notes)

    def _run(self) -> Run:
        recorder = self._recorder
        started = datetime.datetime.fromtimestamp(recorder.started_at, datetime.UTC)
        return Run(
            argv=tuple(sys.argv),
            python=platform.python_version(),
            torch=torch.__version__,
            pid=os.getpid(),
            rank=_environment_number("RANK"),
            world_size=_environment_number("WORLD_SIZE"),
            started=started.isoformat(timespec="seconds"),
            files={path: _source_hash(path, recorder.started_at) for path in sorted(self._files)},
            passes=recorder.passes_seen,
        )


def _tensor(raw: Raw, name: str | None) -> Tensor:
    shape, dtype, device, requires_grad, strides, kind, *unusual = raw
    layout, placements = unusual if unusual else ("strided", None)
    return Tensor(
        shape=None if shape is None else tuple(map(_dimension, shape)),
        dtype="mixed" if dtype is None else str(dtype).removeprefix("torch."),
        device="mixed" if device is None else str(device),
        requires_grad=bool(requires_grad),
        layout=layout or "unknown",
        strides=None if strides is None else tuple(strides),
        name=name,
        kind=kind.__name__,
        placements=placements,
    )


def _dimension(size: Any) -> Dimension:
    if type(size) is Range:
        return DimensionRange(size.low, size.high)
    return size if type(size) is int else str(size)


def _error(raw: Raw | None) -> ErrorInfo | None:
    return ErrorInfo(raw[1], raw[2]) if raw is not None and raw[0] is ERROR else None


def _input_names(variant: ModuleVariant) -> tuple[str, ...]:
    positional = len(variant.inputs) - len(variant.keywords)
    known = variant.record.forward_names[:positional]
    unnamed = tuple(f"*{index}" for index in range(len(known), positional))
    return (*known, *unnamed, *variant.keywords)


def _environment_number(name: str) -> int | None:
    value = os.environ.get(name, "")
    return int(value) if value.isdigit() else None


def _source_hash(path: str, since: float) -> str | None:
    """The hash of a source file, unless it was changed after the recording began."""
    try:
        if os.stat(path).st_mtime > since:
            return None
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except (OSError, ValueError):
        return None
