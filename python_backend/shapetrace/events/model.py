"""The content of a trace, as frozen plain values.

Nothing here knows torch, a frame object or how anything is shown: the recorder makes these, the
codec stores them, the views render them. Keys that a newer Shapetrace wrote and this one does not
know are kept in ``extra`` and written out again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from shapetrace.events.fingerprint import CallFingerprints

JsonObject: TypeAlias = Mapping[str, Any]
"""A decoded JSON object whose keys this version does not know."""


def _no_extra() -> JsonObject:
    return {}


@dataclass(frozen=True, slots=True)
class DimensionRange:
    """A size that differed between calls: every value lay between ``low`` and ``high``."""

    low: int
    high: int
    extra: JsonObject = field(default_factory=_no_extra, hash=False)


Dimension: TypeAlias = int | str | DimensionRange
"""A size: a number, the name of a symbolic size, or the range of the sizes seen."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """The description of one tensor."""

    shape: tuple[Dimension, ...] | None
    """None where the tensor itself cannot say, as strided nested tensors cannot."""
    dtype: str
    device: str = "cpu"
    requires_grad: bool = False
    layout: str = "strided"
    strides: tuple[int | str, ...] | None = None
    """None when the tensor is contiguous, has no strides, or its shape is a range."""
    name: str | None = None
    """The name in the program: a local variable, or the dotted path of a parameter."""
    kind: str = "Tensor"
    """The class: Tensor, Parameter, DTensor, ..."""
    placements: str | None = None
    extra: JsonObject = field(default_factory=_no_extra, hash=False)


@dataclass(frozen=True, slots=True)
class Container:
    """A tuple, list, dict or object that holds values."""

    kind: str
    """tuple, list, dict, or the name of the class."""
    items: tuple[Value, ...]
    keys: tuple[str, ...] | None = None
    """One key for each item; None where the items are only numbered."""
    length: int | None = None
    """How many items there were, when that is more than were kept."""
    extra: JsonObject = field(default_factory=_no_extra, hash=False)


@dataclass(frozen=True, slots=True)
class Other:
    """A value that is not a tensor and holds none, as short text: ``None``, ``0.5``, ``Cache``."""

    text: str
    extra: JsonObject = field(default_factory=_no_extra, hash=False)


Value: TypeAlias = Tensor | Container | Other


@dataclass(frozen=True, slots=True)
class Frame:
    """One place in a function that was on the stack: lines from 1, UTF-8 byte columns from 0."""

    id: int
    file: str
    line: int
    function: str
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    extra: JsonObject = field(default_factory=_no_extra, hash=False)


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """The exception that ended a call."""

    type: str
    message: str
    extra: JsonObject = field(default_factory=_no_extra, hash=False)


@dataclass(frozen=True, slots=True)
class ModuleCall:
    """The calls of one module from one place that had the same inputs and outputs."""

    id: int
    """Unique among modules and ops together; a smaller id was seen earlier."""
    parent: int | None
    """The module call this one was made in."""
    path: str
    """Dotted path from the outermost called module, which is itself ''."""
    class_name: str
    detail: str
    """The module's ``extra_repr()``: ``in_features=6, out_features=6``."""
    call: int
    """Which call of this module (from 1) the first of these was."""
    count: int | None
    """The number of calls; None if forward was called directly, so that they were not counted."""
    file: str | None
    """The place of the call in the program, in code outside torch."""
    line: int | None
    column: int | None
    end_line: int | None
    end_column: int | None
    function: str | None
    stack: tuple[int, ...]
    """Frame ids, outermost first, ending in the frame that made the call."""
    inputs: tuple[Value, ...]
    input_names: tuple[str, ...]
    """The parameter of ``forward`` each input went to."""
    outputs: tuple[Value, ...]
    result: str | None
    """tuple, list or a class name when ``outputs`` are the items of one; None for one value."""
    parameters: int = 0
    """How many numbers its own and its children's parameters hold."""
    error: ErrorInfo | None = None
    note: str | None = None
    """The reason why nothing inside it was recorded, if so."""
    direct: bool = True
    """Whether the program itself made the call, so that the outputs are its expression's value;
    False where torch did, as ``nn.Sequential`` does for its children."""
    fingerprints: tuple[CallFingerprints, ...] = ()
    """Fingerprints of its calls, in their order; only if they were requested."""
    extra: JsonObject = field(default_factory=_no_extra, hash=False)


@dataclass(frozen=True, slots=True)
class Op:
    """The calls of one torch function from one place that had the same inputs and outputs."""

    id: int
    name: str
    """The public name: ``torch.Tensor.view``, ``torch.nn.functional.linear``, ``aten.addmm``."""
    label: str
    """The call without its tensors: ``view(2, 5, 3, 2)``, ``cat(dim=1)``, ``@``."""
    form: str
    """The call with ``{0}``, ``{1}`` in the place of inputs: ``cat([{0}, {1}], dim=1)``."""
    module: int | None
    function: str
    file: str
    line: int
    column: int | None
    end_line: int | None
    end_column: int | None
    direct: bool
    """Whether the program itself made this call, so that the output is its expression's value."""
    stack: tuple[int, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Value, ...]
    result: str | None
    count: int
    level: str = "torch"
    """``torch``: a call as the program wrote it. ``aten``: a kernel under such a call."""
    parent: int | None = None
    """For a kernel, the op it ran for; None where no recorded op caused it."""
    error: ErrorInfo | None = None
    thread: str | None = None
    """The thread's name, where it was not the main one."""
    fingerprints: tuple[CallFingerprints, ...] = ()
    """Fingerprints of its calls, in their order; only if they were requested."""
    extra: JsonObject = field(default_factory=_no_extra, hash=False)


@dataclass(frozen=True, slots=True)
class Variable:
    """A value that a name had from this place on."""

    name: str
    file: str
    line: int
    column: int | None
    end_line: int | None
    end_column: int | None
    function: str
    module: int | None
    tensor: Value
    kind: str = "assignment"
    """``assignment``, or ``parameter`` for an argument of the function (at its first line)."""
    extra: JsonObject = field(default_factory=_no_extra, hash=False)


@dataclass(frozen=True, slots=True)
class Coverage:
    """Code that ran and was not recorded."""

    reason: str
    where: str
    count: int
    extra: JsonObject = field(default_factory=_no_extra, hash=False)


@dataclass(frozen=True, slots=True)
class Run:
    """The program that ran."""

    argv: tuple[str, ...]
    python: str
    torch: str | None
    pid: int
    rank: int | None
    world_size: int | None
    started: str
    """When recording began, in UTC, as ISO 8601."""
    files: Mapping[str, str | None]
    """The SHA-256 of each source file as it ran; None where it changed since or has no source."""
    passes: int = 0
    """The number of recorded outermost forward passes."""
    extra: JsonObject = field(default_factory=_no_extra, hash=False)


@dataclass(frozen=True, slots=True)
class Trace:
    """A whole recording."""

    run: Run
    modules: tuple[ModuleCall, ...] = ()
    ops: tuple[Op, ...] = ()
    frames: tuple[Frame, ...] = ()
    variables: tuple[Variable, ...] = ()
    coverage: tuple[Coverage, ...] = ()
    extra: JsonObject = field(default_factory=_no_extra, hash=False)
