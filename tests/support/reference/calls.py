"""One torch call as plain facts, and the comparison of two lists of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from os.path import basename

from shapetrace.events.model import Container, DimensionRange, Op, Tensor, Trace, Value


@dataclass(frozen=True)
class TensorFacts:
    """The shape and type of a tensor at the moment when it was read."""

    shape: tuple[object, ...] | None
    dtype: str

    def __str__(self) -> str:
        """Show it as ``float32[2,3]``."""
        sizes = "?" if self.shape is None else ",".join(map(str, self.shape))
        return f"{self.dtype}[{sizes}]"


@dataclass(frozen=True)
class Call:
    """One call of a torch function: what was called, from where, with what, giving what."""

    name: str
    file: str
    line: int
    end_line: int | None
    column: int | None
    end_column: int | None
    direct: bool
    inputs: tuple[TensorFacts, ...]
    outputs: tuple[TensorFacts, ...]
    error: str | None

    @property
    def is_widened(self) -> bool:
        """Return whether a size represents several calls that differed."""
        sizes = (size for facts in self.inputs + self.outputs for size in facts.shape or ())
        return any(isinstance(size, DimensionRange) for size in sizes)

    def __str__(self) -> str:
        """Show it on one line, as a failing comparison lists it."""
        place = f"{basename(self.file)}:{self.line}:{self.column}-{self.end_line}:{self.end_column}"
        inputs = " ".join(map(str, self.inputs))
        outputs = " ".join(map(str, self.outputs)) if self.error is None else f"!{self.error}"
        by = "direct" if self.direct else "indirect"
        return f"{self.name} {place} {by} ({inputs}) -> {outputs or 'no tensor'}"


def tensors_in(values: Iterable[Value]) -> Iterator[TensorFacts]:
    """Yield the tensors in recorded values, in order."""
    for value in values:
        if isinstance(value, Tensor):
            yield TensorFacts(value.shape, value.dtype)
        elif isinstance(value, Container):
            yield from tensors_in(value.items)


def call_of_op(op: Op) -> Call:
    """Reduce a recorded op to the facts that the reference knows too."""
    return Call(
        name=op.name,
        file=op.file,
        line=op.line,
        end_line=op.end_line,
        column=op.column,
        end_column=op.end_column,
        direct=op.direct,
        inputs=tuple(tensors_in(op.inputs)),
        outputs=tuple(tensors_in(op.outputs)),
        error=None if op.error is None else op.error.type,
    )


def calls_of_trace(trace: Trace) -> Counter[Call]:
    """Count the torch-level calls of a trace, in order of first appearance."""
    calls: Counter[Call] = Counter()
    for op in sorted(trace.ops, key=lambda op: op.id):
        if op.level == "torch":
            calls[call_of_op(op)] += op.count
    return calls


def difference(expected: Counter[Call], actual: Counter[Call]) -> str:
    """Say which calls only one side has; nothing when both have the same."""
    remaining = expected - actual
    unexplained = actual - expected
    for widened in [call for call in unexplained if call.is_widened]:
        unexplained[widened] -= _take_covered(widened, unexplained[widened], remaining)
    missing, surplus = sum(remaining.values()), sum((+unexplained).values())
    if not missing and not surplus:
        return ""
    lines = [f"{expected.total()} calls in the reference, {actual.total()} in the trace"]
    lines += [f"missing {count} × {call}" for call, count in remaining.items() if count > 0]
    lines += [f"surplus {count} × {call}" for call, count in unexplained.items() if count > 0]
    return "\n".join(lines)


def _take_covered(widened: Call, count: int, remaining: Counter[Call]) -> int:
    """Take up to ``count`` calls that the widened call stands for out of ``remaining``."""
    taken = 0
    for call in list(remaining):
        if taken < count and _covers(widened, call):
            here = min(count - taken, remaining[call])
            remaining[call] -= here
            taken += here
    return taken


def _covers(widened: Call, call: Call) -> bool:
    same_place = (
        _place(widened) == _place(call)
        and len(widened.inputs) == len(call.inputs)
        and len(widened.outputs) == len(call.outputs)
    )
    pairs = zip(widened.inputs + widened.outputs, call.inputs + call.outputs, strict=False)
    return same_place and all(facts_cover(wide, narrow) for wide, narrow in pairs)


def _place(call: Call) -> tuple[object, ...]:
    return (
        call.name,
        call.file,
        call.line,
        call.end_line,
        call.column,
        call.end_column,
        call.direct,
        call.error,
    )


def facts_cover(claimed: TensorFacts, observed: TensorFacts) -> bool:
    """Say whether a claim, whose sizes may be ranges, holds for an observed tensor."""
    if claimed.shape is None or observed.shape is None:
        return claimed == observed
    return (
        claimed.dtype == observed.dtype
        and len(claimed.shape) == len(observed.shape)
        and all(map(_size_covers, claimed.shape, observed.shape))
    )


def _size_covers(claimed: object, observed: object) -> bool:
    if isinstance(claimed, DimensionRange) and isinstance(observed, int):
        return claimed.low <= observed <= claimed.high
    return claimed == observed
