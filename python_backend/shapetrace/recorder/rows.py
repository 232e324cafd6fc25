"""The new part of a recording as rows: lists of numbers and texts that refer to each other.

Rows are made while the program runs, by a thread that takes the interpreter away from it, so
everything that can wait is left to the reader (``events.rows``). ``events.row_columns`` names the
columns. What needs code objects, modules or functions is done here.
"""

from __future__ import annotations

import datetime
import os
import platform
import sys
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import torch

from shapetrace.events.source_text import source_row
from shapetrace.recorder.callsite import Activation, Site, user_site
from shapetrace.recorder.describe import (
    CONTAINER,
    Raw,
    holds_tensor,
    is_return_type,
    item_of,
)
from shapetrace.recorder.naming import form_of, label_of, public_name, short_name
from shapetrace.recorder.places import Places, function_name
from shapetrace.recorder.plain_rows import Row, value_row
from shapetrace.recorder.positions import Position, Positions
from shapetrace.recorder.records import (
    ERROR,
    KernelVariant,
    ModuleVariant,
    OpVariant,
    VariableNote,
)

if TYPE_CHECKING:
    from shapetrace.recorder.session import Recorder
    from shapetrace.recorder.values.fingerprints import Fingerprints

Message: TypeAlias = dict[str, Any]

MOST_ROWS: Final = 2000
"""Ops and module calls in one message."""

MOST_TEXT: Final = 2 << 20
"""Characters of source files in one message, or a file more."""

_IN_ORDER: Final = frozenset({"tuple", "list", "Size"})
_DICTIONARIES: Final = frozenset({"dict", "OrderedDict"})
_COMPARISONS: Final = frozenset(
    f"torch.Tensor.{name}"
    for name in (
        "lt",
        "le",
        "gt",
        "ge",
        "eq",
        "ne",
        "__lt__",
        "__le__",
        "__gt__",
        "__ge__",
        "__eq__",
    )
)
"""``max(a, b)`` compares, then tests the truth: only that shows that it is not the value."""


class RowWriter:
    """Writes what has come to a recording since it was asked before. One thread may ask."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._positions = Positions()
        self._worth = recorder.worth
        self._message: Message = {}
        self._places = Places(self._positions, self._add)
        self._values: dict[Any, int] = {}
        self._value_count = 0
        self._modules_read = self._ops_read = self._kernels_read = self._notes_read = 0
        self._open_modules: list[ModuleVariant] = []
        self._open_ops: list[OpVariant] = []
        self._open_kernels: list[KernelVariant] = []
        self._written_ops: list[OpVariant] = []
        self._written_kernels: list[KernelVariant] = []
        self._written_modules: list[ModuleVariant] = []
        self._op_counts: list[int] = []
        self._kernel_states: list[Any] = []
        self._module_states: list[Any] = []
        self._variables: dict[Any, int] = {}
        self._looked_at: dict[int, int] = {}
        """Of how many calls of a variant fingerprints were written."""
        self._coverage: list[Row] = []
        self._run: Message | None = None

    def write(self, final: bool = False) -> Message | None:
        """A message with what is new; None when nothing is.

        Calls that have not returned wait for the next message, where this is not the ``final`` one.
        """
        message = self._message = {}
        room = MOST_ROWS
        for module in self._new_modules(room):
            self._add("modules", self._module(module))
        room -= len(message.get("modules", ()))
        for op in self._new_ops(max(room, 1), final):
            self._add("ops", self._op(op))
        for kernel in self._new_kernels(max(room, 1)):
            self._add("ops", self._kernel(kernel))
        notes = self._recorder.variables[self._notes_read : self._notes_read + MOST_ROWS]
        self._notes_read += len(notes)
        for note in notes:
            self._note(note)
        if self._run is None:
            self._describe_run()
        self._write_sources()
        return message or None

    def write_changes(self) -> Message | None:
        """A message with what has changed in rows written before; None when nothing has.

        Looks at each of them, so it is for now and then.
        """
        message = self._message = {}
        for index, module in enumerate(self._written_modules):
            state = _module_state(module)
            if state != self._module_states[index]:
                if state[1:] == self._module_states[index][1:]:
                    self._add("counts", (module.id, module.count))
                else:
                    self._add("modules", self._module(module))
                self._module_states[index] = state
        counts = [op.count for op in self._written_ops]
        if counts != self._op_counts:
            for op, count, former in zip(self._written_ops, counts, self._op_counts, strict=True):
                if count == former:
                    continue
                if op.wide:
                    self._add("ops", self._op(op))
                else:
                    self._add("counts", (op.id, count))
            self._op_counts = counts
        for index, kernel in enumerate(self._written_kernels):
            state = _kernel_state(kernel)
            if state != self._kernel_states[index]:
                if state[1:] == self._kernel_states[index][1:]:
                    self._add("counts", (kernel.id, kernel.count))
                else:
                    self._add("ops", self._kernel(kernel))
                self._kernel_states[index] = state
        if self._recorder.fingerprints is not None:
            self._write_fingerprints(self._recorder.fingerprints)
        coverage = self._find_coverage()
        if coverage != self._coverage:
            message["coverage"] = self._coverage = coverage
        if self._run is not None and self._has_run_changed(self._run):
            self._describe_run()
        return message or None

    def _add(self, kind: str, row: Any) -> None:
        self._message.setdefault(kind, []).append(row)

    def _write_fingerprints(self, fingerprints: Fingerprints) -> None:
        fingerprints.sort()
        variants: list[ModuleVariant | OpVariant | KernelVariant] = [
            *self._written_modules,
            *self._written_ops,
            *self._written_kernels,
        ]
        for variant in variants:
            number = fingerprints.number_of(variant.id, variant.count)
            if number != self._looked_at.get(variant.id, 0):
                self._looked_at[variant.id] = number
                self._add("fingerprints", (variant.id, fingerprints.rows_of(variant.id, number)))

    def _write_sources(self) -> None:
        """Add files that were met, up to so much text; the rest comes with the next message."""
        room = MOST_TEXT
        since = self._recorder.options.program_began_at or self._recorder.started_at
        while self._places.unread_files and room > 0:
            row = source_row(self._places.unread_files.pop(0), since)
            room -= len(row[2] or "")
            self._add("sources", row)

    # What is new

    def _new_modules(self, room: int) -> Iterator[ModuleVariant]:
        still_open = []
        for module in self._open_modules:
            if module.output is None and module.error is None:
                still_open.append(module)
            else:
                yield module
        new = self._recorder.modules[self._modules_read : self._modules_read + room]
        self._modules_read += len(new)
        for module in new:
            self._written_modules.append(module)
            self._module_states.append(_module_state(module))
            if module.output is None and module.error is None:
                still_open.append(module)
            yield module
        self._open_modules = still_open

    def _new_ops(self, room: int, final: bool) -> Iterator[OpVariant]:
        new = self._recorder.ops[self._ops_read : self._ops_read + room]
        self._ops_read += len(new)
        still_open: list[OpVariant] = []
        waiting, self._open_ops = self._open_ops, still_open
        for index, op in enumerate(chain(waiting, new)):
            is_new = index >= len(waiting)
            if not op.count or (is_new and not final and public_name(op.function) in _COMPARISONS):
                still_open.append(op)
            elif self._module_is_read(op.site.activation.module):
                self._written_ops.append(op)
                self._op_counts.append(op.count)
                yield op
            else:
                still_open.append(op)

    def _new_kernels(self, room: int) -> Iterator[KernelVariant]:
        new = self._recorder.kernels[self._kernels_read : self._kernels_read + room]
        self._kernels_read += len(new)
        still_open: list[KernelVariant] = []
        for kernel in chain(self._open_kernels, new):
            if kernel.count and self._module_is_read(kernel.site.activation.module):
                self._written_kernels.append(kernel)
                self._kernel_states.append(_kernel_state(kernel))
                yield kernel
            else:
                still_open.append(kernel)
        self._open_kernels = still_open

    def _module_is_read(self, module: ModuleVariant | None) -> bool:
        """Whether the module call that something was made in is known to the reader."""
        if module is None or self._modules_read >= len(self._recorder.modules):
            return True
        return module.id < self._recorder.modules[self._modules_read].id

    # Values

    def _value(self, raw: Raw) -> int:
        try:
            known = self._values.get(raw)
        except TypeError:  # symbolic sizes cannot be hashed
            return self._new_value(raw)
        if known is None:
            known = self._values[raw] = self._new_value(raw)
        return known

    def _new_value(self, raw: Raw) -> int:
        self._value_count += 1
        self._add("values", (self._value_count, value_row(raw)))
        return self._value_count

    def _outputs(self, raw: Raw | None) -> tuple[str | None, tuple[int, ...]]:
        """The class that several outputs are the items of, and the values."""
        if raw is None or raw[0] is ERROR:
            return None, ()
        if raw[0] is CONTAINER and (
            raw[1] in _IN_ORDER
            if raw[2] is None
            else raw[1] not in _DICTIONARIES and is_return_type(raw)
        ):
            return raw[1], tuple(map(self._value, raw[3]))
        return None, (self._value(raw),)

    # Rows

    def _module(self, variant: ModuleVariant) -> Row:
        record = variant.record
        site = record.site
        place = user_site(site)
        direct = self._worth.is_direct(variant)
        is_told = direct and not variant.implicit
        if is_told:
            self._assigned(variant, site, variant.output, variant.wide)
        return (
            variant.id,
            None if variant.parent is None else variant.parent.id,
            record.path,
            record.class_name,
            record.detail,
            variant.call,
            None if variant.implicit else variant.count,
            None if place is None else self._places.frame(place)[0],
            self._places.stack(site),
            tuple(map(self._value, variant.inputs)),
            variant.names,
            _input_names(variant),
            *self._outputs(variant.output),
            record.parameters,
            variant.error,
            variant.note,
            direct,
        )

    def _op(self, variant: OpVariant) -> Row:
        site = variant.site
        code = site.activation.code
        operator = None
        if not site.activation.in_torch:
            name = short_name(variant.function)
            operator = self._positions.operator(code, site.offset, name)
        constant_first = operator is not None and self._worth.callees.begins_with_constant(
            code, site.offset
        )
        module = site.activation.module
        direct = self._worth.is_direct(variant)
        if direct:
            self._assigned(variant, site, variant.output, variant.wide)
        return (
            variant.id,
            public_name(variant.function),
            label_of(variant.function, variant.arguments, operator),
            form_of(variant.function, variant.arguments, operator, constant_first),
            None if module is None else module.id,
            self._places.frame(user_site(site) or site)[0],
            direct,
            self._places.stack(site),
            tuple(map(self._value, variant.inputs)),
            variant.names,
            *self._outputs(variant.output),
            variant.count,
            "torch",
            None,
            _error(variant.output),
            variant.thread,
        )

    def _kernel(self, variant: KernelVariant) -> Row:
        site = variant.site
        module = site.activation.module
        return (
            variant.id,
            public_name(variant.function),
            label_of(variant.function, variant.arguments, None),
            form_of(variant.function, variant.arguments, None),
            None if module is None else module.id,
            self._places.frame(user_site(site) or site)[0],
            False,
            self._places.stack(site),
            tuple(map(self._value, variant.inputs)),
            None,
            *self._outputs(variant.output),
            variant.count,
            "aten",
            None if variant.parent is None else variant.parent.id,
            _error(variant.output),
            None,
        )

    def _note(self, note: VariableNote) -> None:
        """A value that was read from the locals of a function."""
        code = note.activation.code
        position: Position = (code.co_firstlineno, None, None, None)
        if note.offset is not None:
            position = self._positions.of_store(code, note.offset, note.name)
        self._variable(note.activation, note.name, position, note.raw, note.offset is None, None)

    def _assigned(
        self, call: OpVariant | ModuleVariant, site: Site, output: Raw | None, is_wide: bool
    ) -> None:
        """The variables stored straight from a call whose value is known."""
        if output is None or output[0] is ERROR:
            return
        activation = site.activation
        for name, offset, path in self._worth.targets.of(activation.code, site.offset):
            raw = item_of(output, path)
            if raw is not None and holds_tensor(raw):
                position = self._positions.of_store(activation.code, offset, name)
                key = (call.id, name, offset) if is_wide else None
                self._variable(activation, name, position, raw, False, key)

    def _variable(
        self,
        activation: Activation,
        name: str,
        position: Position,
        raw: Raw,
        is_parameter: bool,
        changing: Any,
    ) -> None:
        """Write a value of a variable once, or again if it is ``changing``."""
        line, end_line, column, end_column = position
        file = self._places.file(activation.code)
        module = None if activation.module is None else activation.module.id
        value = self._value(raw)
        key = changing or (file, line, column, name, module, value)
        number = self._variables.get(key)
        if number is not None and changing is None:
            return
        if number is None:
            number = self._variables[key] = len(self._variables) + 1
        function = function_name(activation.code)
        place = (file, line, column, end_line, end_column, function)
        kind = "parameter" if is_parameter else "assignment"
        self._add("variables", (number, name, *place, module, value, kind))

    def _find_coverage(self) -> list[Row]:
        recorder = self._recorder
        notes: list[Row] = [(*key, count) for key, count in list(recorder.notes.items())]
        if recorder.rest.missed:
            where = f"not looked at since pass {recorder.rest.slept_at}"
            notes.append(("settled", where, recorder.rest.missed))
        return notes

    def _has_run_changed(self, told: Message) -> bool:
        now = self._recorder.passes_seen, *self._rank_and_world_size()
        return now != (told["passes"], told["rank"], told["world_size"])

    def _rank_and_world_size(self) -> tuple[int | None, int | None]:
        """Those of the recording, whatever has become of the process since it ended."""
        process = self._recorder.process
        return process.look() if self._recorder.active else process.rank_and_world_size

    def _describe_run(self) -> None:
        recorder = self._recorder
        started = datetime.datetime.fromtimestamp(recorder.started_at, datetime.UTC)
        rank, world_size = self._rank_and_world_size()
        self._run = self._message["run"] = {
            "argv": list(map(str, sys.argv)),
            "python": platform.python_version(),
            "torch": str(torch.__version__),
            "pid": os.getpid(),
            "rank": rank,
            "world_size": world_size,
            "started": started.isoformat(timespec="seconds"),
            "passes": recorder.passes_seen,
        }


def _module_state(module: ModuleVariant) -> Row:
    """The columns of a module's row that may change; the count comes first."""
    record = module.record
    ending = (module.error, module.note, record.class_name, record.detail, record.parameters)
    return (module.count, id(module.output), id(module.inputs), module.implicit, *ending)


def _kernel_state(kernel: KernelVariant) -> Row:
    return (kernel.count, id(kernel.inputs), id(kernel.output))


def _error(raw: Raw | None) -> Row | None:
    return raw[1:] if raw is not None and raw[0] is ERROR else None


def _input_names(variant: ModuleVariant) -> tuple[str, ...]:
    positional = len(variant.inputs) - len(variant.keywords)
    known = variant.record.forward_names[:positional]
    unnamed = tuple(f"*{index}" for index in range(len(known), positional))
    return (*known, *unnamed, *variant.keywords)
