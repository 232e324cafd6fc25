"""The differences of a call that both runs made."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from shapetrace.comparing.addresses import without_addresses
from shapetrace.comparing.comparison import Aspect, Kind, Part
from shapetrace.comparing.limits import without_limits
from shapetrace.comparing.walk import WalkStep
from shapetrace.events.model import (
    Container,
    Dimension,
    DimensionRange,
    ErrorInfo,
    ModuleCall,
    Op,
    Other,
    Tensor,
    Value,
)

Pair: TypeAlias = tuple[str, str]

TENSOR_KINDS: Final[tuple[Kind, ...]] = ("dtype", "device", "gradient", "layout")
"""Properties of tensors that may differ throughout."""

_DTYPE_IN_TEXT = re.compile(r"torch\.(\w+)")
_DEVICE_IN_TEXT = re.compile(r"'((?:cpu|cuda|mps|xpu|meta)(?::\d+)?)'|\b(cuda(?::\d+)?)\b")
_CASTS: Final = frozenset(
    ("to", "type", "type_as", "float", "half", "bfloat16", "double", "cuda", "cpu", "_to_copy")
)

_ABSENT = Other("None")

_NUMBER = re.compile(r"-?\d+")
_PLACEHOLDER = re.compile(r"\{(\d+)\}|\{\{|\}\}")


@dataclass(frozen=True, slots=True)
class Known:
    """Differences that are not repeated at each call: they are so throughout or do not matter."""

    pairs: Mapping[Kind, frozenset[Pair]] = field(default_factory=dict)
    """The values of A and B at the same place."""
    ignored: frozenset[Kind] = frozenset()

    def covers(self, kind: Kind, ours: str, theirs: str) -> bool:
        """Return whether such a difference is reported already."""
        return kind in self.ignored or (ours, theirs) in self.pairs.get(kind, ())


def traits(tensor: Tensor) -> tuple[str, str, str, str]:
    """The value of each of ``TENSOR_KINDS`` for a tensor."""
    return (tensor.dtype, tensor.device, _gradient(tensor), _layout(tensor))


def aspects(step: WalkStep, known: Known) -> list[Aspect]:
    """Everything but values and counts in which two calls differ."""
    a, b = step.a, step.b
    if isinstance(a, ModuleCall) and isinstance(b, ModuleCall):
        found = _module_aspects(a, b, step, known)
    elif isinstance(a, Op) and isinstance(b, Op):
        found = _op_aspects(a, b, known)
    else:
        raise AssertionError("a module call and an op never belong together")
    return [aspect for aspect in found if aspect.kind not in known.ignored]


def _module_aspects(a: ModuleCall, b: ModuleCall, step: WalkStep, known: Known) -> Iterator[Aspect]:
    if step.phase == "enter":
        if a.detail != b.detail and a.class_name == b.class_name:
            yield from _text_aspect(a.detail, b.detail, known)
        if (a.inputs, a.input_names) != (b.inputs, b.input_names):
            yield from _named_aspects(a, b, known)
        if step.relation == "moved":
            yield Aspect("order", "call")
        return
    yield from _result_aspects(a, b, known)
    yield from _error_aspects(a.error, b.error)


def _op_aspects(a: Op, b: Op, known: Known) -> Iterator[Aspect]:
    if a.name != b.name:
        yield Aspect("op", "call", None, Other(a.label), Other(b.label))
    elif a.label != b.label:
        yield from _text_aspect(a.label, b.label, known)
    elif a.form != b.form and "(" not in a.label and len(a.inputs) == len(b.inputs):
        # Of operators the label does not say what else they were given, as the 8 in x / 8.
        yield from _text_aspect(_operation(a), _operation(b), known)
    if a.inputs != b.inputs:
        yield from value_aspects(a.inputs, b.inputs, "input", known)
    yield from _result_aspects(a, b, known)
    yield from _error_aspects(a.error, b.error)


def _operation(op: Op) -> str:
    """An operator with what it was given: tensors by their names, everything else as it is."""
    names = [tensor.name or "…" for tensor in op.inputs]

    def filled(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0][0]
        index = int(match[1])
        return names[index] if index < len(names) else "…"

    return _PLACEHOLDER.sub(filled, op.form)


def _result_aspects(a: Op | ModuleCall, b: Op | ModuleCall, known: Known) -> Iterator[Aspect]:
    if a.error is not None or b.error is not None:
        return
    if a.result != b.result:
        yield Aspect("shape", "output", None, _whole(a), _whole(b))
    elif a.outputs != b.outputs:
        yield from value_aspects(a.outputs, b.outputs, "output", known)


def _error_aspects(a: ErrorInfo | None, b: ErrorInfo | None) -> Iterator[Aspect]:
    if a == b:
        return
    if a is None or b is None or _error_key(a) != _error_key(b):
        yield Aspect("error", "call", None, _error_value(a), _error_value(b))


def is_known_cast(op: Op, known: Known) -> bool:
    """Whether an op does nothing but change a dtype or device that is another one throughout.

    Programs cast only what has not the right one yet.
    """
    if len(op.inputs) != 1 or len(op.outputs) != 1 or op.error is not None:
        return False
    (before,), (after,) = op.inputs, op.outputs
    if not isinstance(after, Tensor) or before.shape != after.shape:
        return False
    kinds: list[Kind] = []
    if before.dtype != after.dtype:
        kinds.append("dtype")
    if before.device != after.device:
        kinds.append("device")
    is_told = all(known.pairs.get(kind) or kind in known.ignored for kind in kinds)
    return bool(kinds) and is_told and op.name.rpartition(".")[2] in _CASTS


def value_aspects(
    a: Sequence[Value], b: Sequence[Value], part: Part, known: Known
) -> Iterator[Aspect]:
    """The differences of the inputs, or of the outputs."""
    if len(a) != len(b):
        kind: Kind = "arguments" if part == "input" else "shape"
        yield Aspect(kind, part, None, Container("tuple", tuple(a)), Container("tuple", tuple(b)))
        return
    for position, (ours, theirs) in enumerate(zip(a, b, strict=True)):
        if ours is theirs or ours == theirs:
            continue
        for kind in _value_kinds(ours, theirs, part, known):
            yield Aspect(kind, part, position, ours, theirs)


def tensor_pairs(a: Sequence[Value], b: Sequence[Value]) -> Iterator[tuple[Tensor, Tensor]]:
    """The tensors of two rows of values, as far as these are built alike."""
    for ours, theirs in zip(a, b, strict=False):
        if isinstance(ours, Tensor):
            if isinstance(theirs, Tensor):
                yield ours, theirs
        elif isinstance(ours, Container) and isinstance(theirs, Container):
            yield from tensor_pairs(ours.items, theirs.items)


def _value_kinds(a: Value, b: Value, part: Part, known: Known) -> list[Kind]:
    """In which ways two values differ, each once."""
    found: dict[Kind, None] = {}
    pending: list[tuple[Value, Value]] = [(a, b)]
    while pending:
        ours, theirs = pending.pop()
        if isinstance(ours, Tensor) and isinstance(theirs, Tensor):
            found.update(dict.fromkeys(_tensor_kinds(ours, theirs, known)))
        elif isinstance(ours, Container) and isinstance(theirs, Container):
            if (ours.kind, ours.keys, len(ours.items), ours.length) == (
                (theirs.kind, theirs.keys, len(theirs.items), theirs.length)
            ):
                pending += zip(ours.items, theirs.items, strict=True)
            else:
                found["arguments" if part == "input" else "shape"] = None
        elif isinstance(ours, Other) and isinstance(theirs, Other):
            if without_addresses(ours.text) != without_addresses(theirs.text):
                found["arguments" if part == "input" else "values"] = None
        else:
            found["arguments" if part == "input" else "shape"] = None
    return list(found)


def _tensor_kinds(a: Tensor, b: Tensor, known: Known) -> Iterator[Kind]:
    if a.shape != b.shape and not _may_be_alike(a.shape, b.shape):
        yield "shape"
    for kind, ours, theirs in zip(TENSOR_KINDS, traits(a), traits(b), strict=True):
        if ours != theirs and not known.covers(kind, ours, theirs):
            yield kind


def _may_be_alike(a: tuple[Dimension, ...] | None, b: tuple[Dimension, ...] | None) -> bool:
    """Return whether calls of which only ranges of sizes are known can have had the same ones."""
    if a is None or b is None:
        return False
    return len(a) == len(b) and all(map(_size_may_be_alike, a, b))


def _size_may_be_alike(a: Dimension, b: Dimension) -> bool:
    if isinstance(a, DimensionRange) or isinstance(b, DimensionRange):
        if isinstance(a, str) or isinstance(b, str):
            return False
        low_a, high_a = (a.low, a.high) if isinstance(a, DimensionRange) else (a, a)
        low_b, high_b = (b.low, b.high) if isinstance(b, DimensionRange) else (b, b)
        return low_a <= high_b and low_b <= high_a
    return a == b


def _gradient(tensor: Tensor) -> str:
    return "requires_grad" if tensor.requires_grad else "no gradient"


def _layout(tensor: Tensor) -> str:
    kind = "Tensor" if tensor.kind == "Parameter" else tensor.kind
    parts = [kind, tensor.layout, tensor.placements or ""]
    return " ".join(part for part in parts if part and part not in ("Tensor", "strided"))


def _text_aspect(a: str, b: str, known: Known) -> Iterator[Aspect]:
    """The arguments in a text, split so that dtypes and devices among them can be compared."""
    ours, theirs = without_addresses(a), without_addresses(b)
    for kind, pattern in (("dtype", _DTYPE_IN_TEXT), ("device", _DEVICE_IN_TEXT)):
        found = list(zip(pattern.findall(ours), pattern.findall(theirs), strict=False))
        pairs = [(_found(one), _found(other)) for one, other in found if one != other]
        bare_a, bare_b = pattern.sub("*", ours), pattern.sub("*", theirs)
        if pairs and _covers_text(known, kind, pairs):
            ours, theirs = bare_a, bare_b
        elif pairs and bare_a == bare_b:
            yield Aspect("dtype" if kind == "dtype" else "device", "call", None, Other(a), Other(b))
            return
    if ours != theirs and (known.pairs.get("dtype") or "dtype" in known.ignored):
        ours, theirs = without_limits(ours), without_limits(theirs)
    if "shape" in known.ignored:
        ours, theirs = _NUMBER.sub("*", ours), _NUMBER.sub("*", theirs)
    if ours != theirs:
        yield Aspect("arguments", "call", None, Other(a), Other(b))


def _covers_text(known: Known, kind: str, pairs: Sequence[Pair]) -> bool:
    checked: Kind = "dtype" if kind == "dtype" else "device"
    return all(known.covers(checked, *pair) or pair[0] == pair[1] for pair in pairs)


def _found(match: str | tuple[str, ...]) -> str:
    return match if isinstance(match, str) else next(filter(None, match), "")


def _named_aspects(a: ModuleCall, b: ModuleCall, known: Known) -> Iterator[Aspect]:
    """The differences of a module call's arguments, by parameter."""
    if a.input_names == b.input_names or a.class_name != b.class_name:
        yield from value_aspects(a.inputs, b.inputs, "input", known)
        return
    ours, theirs = _by_name(a), _by_name(b)
    for name in {**ours, **theirs}:
        one, other = ours.get(name, _ABSENT), theirs.get(name, _ABSENT)
        kinds = [] if one == other else _value_kinds(one, other, "input", known)
        position = a.input_names.index(name) if name in ours else b.input_names.index(name)
        for kind in kinds:
            yield Aspect(kind, "input", position, one, other)


def _by_name(call: ModuleCall) -> dict[str, Value]:
    return dict(zip(call.input_names, call.inputs, strict=False))


def _whole(call: Op | ModuleCall) -> Value:
    return Container(call.result or "tuple", call.outputs)


def _error_key(error: ErrorInfo) -> Pair:
    return error.type, without_addresses(error.message)


def _error_value(error: ErrorInfo | None) -> Other | None:
    return None if error is None else Other(f"{error.type}: {error.message}")
