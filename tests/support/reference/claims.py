"""What a trace claims about assignment statements, held against what was really assigned."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from shapetrace.events.model import Container, ModuleCall, Op, Other, Tensor, Trace, Value
from tests.support.reference.calls import TensorFacts, facts_cover, tensors_in
from tests.support.reference.lines import (
    Assignment,
    LineWatch,
    Target,
    assigned_names,
    assignments_of,
)

Range: TypeAlias = tuple[int, int, int, int]
"""Line, column, end line, end column, as the interpreter counts them."""


@dataclass(frozen=True)
class Verdict:
    """How the claims of a trace compare with the tensors that were really assigned."""

    lines: int
    """Executed statements that gave a tensor to a name."""
    covered: int
    """Those where the trace has a value for every such name."""
    uncovered: tuple[str, ...]
    wrong: tuple[str, ...]

    @property
    def percentage(self) -> float:
        """The covered share of the executed tensor-assigning lines."""
        return 100.0 * self.covered / self.lines if self.lines else 100.0

    def __str__(self) -> str:
        """List what is not covered and what is wrong."""
        head = f"{self.covered} of {self.lines} lines have a value ({self.percentage:.1f} %)"
        rows = [f"  no value: {row}" for row in self.uncovered]
        rows += [f"  wrong: {row}" for row in self.wrong]
        return "\n".join([head, *rows])


Worth: TypeAlias = TensorFacts | tuple[TensorFacts, ...]
"""A tensor, or the tensors in a container in order."""


def judge(trace: Trace, watch: LineWatch, paths: tuple[str, ...]) -> Verdict:
    """Hold the claims of a trace against the assignments of some source files."""
    claims: dict[Target, set[Worth]] = defaultdict(set)
    for path in paths:
        source = Path(path).read_bytes()
        for target, worth in _claims(trace, path, source):
            claims[target].add(worth)
    uncovered, covered = [], 0
    for (file, line), targets in sorted(watch.lines.items()):
        without = sorted(target.name for target in targets if not _has_tensor(claims[target]))
        covered += not without
        if without:
            uncovered.append(f"{Path(file).name}:{line} {', '.join(without)}")
    wrong = [
        f"{Path(target.file).name}:{target.line} {target.name} is said to be {_text(worth)}, was "
        + (" or ".join(sorted(map(_text, _seen(watch, target)))) or "no tensor")
        for target in sorted(claims.keys() & watch.executed, key=lambda target: target.line)
        for worth in sorted(claims[target], key=str)
        if not _holds(worth, watch, target)
    ]
    wrong += _wrong_parameters(trace, watch, paths)
    return Verdict(len(watch.lines), covered, tuple(uncovered), tuple(wrong))


def _wrong_parameters(trace: Trace, watch: LineWatch, paths: tuple[str, ...]) -> Iterator[str]:
    for variable in trace.variables:
        worth = _worth(variable.tensor)
        is_watched = variable.file in paths and "<" not in variable.function.rsplit(".", 1)[-1]
        if variable.kind == "parameter" and is_watched and worth is not None:
            target = Target(variable.file, variable.line, variable.line, variable.name)
            seen = watch.parameters.get(target, ())
            if not any(_covers(worth, each) for each in seen):
                was = " or ".join(sorted(map(_text, seen))) or "no tensor"
                place = f"{Path(target.file).name}:{target.line}"
                yield f"{place} {target.name} is said to begin as {_text(worth)}, was {was}"


def _covers(claimed: Worth, seen: Worth) -> bool:
    if isinstance(claimed, TensorFacts):
        return isinstance(seen, TensorFacts) and facts_cover(claimed, seen)
    if isinstance(seen, TensorFacts):
        return False
    return len(claimed) == len(seen) and all(map(facts_cover, claimed, seen))


def _has_tensor(claims: set[Worth]) -> bool:
    return any(isinstance(worth, TensorFacts) for worth in claims)


def _seen(watch: LineWatch, target: Target) -> set[Worth]:
    return {*watch.tensors.get(target, ()), *watch.containers.get(target, ())}


def _holds(claim: Worth, watch: LineWatch, target: Target) -> bool:
    if isinstance(claim, TensorFacts):
        return any(facts_cover(claim, seen) for seen in watch.tensors.get(target, ()))
    return target in watch.objects or any(
        len(claim) == len(seen) and all(map(facts_cover, claim, seen))
        for seen in watch.containers.get(target, ())
    )


def _text(worth: Worth) -> str:
    return str(worth) if isinstance(worth, TensorFacts) else f"({', '.join(map(str, worth))})"


def _worth(value: Value) -> Worth | None:
    """Reduce a recorded value to its tensors; None when it holds none."""
    facts = tuple(tensors_in([value]))
    if isinstance(value, Tensor):
        return facts[0]
    return facts or None


def _claims(trace: Trace, path: str, source: bytes) -> Iterator[tuple[Target, Worth]]:
    values = _values_by_range(trace, path)
    for statement in assignments_of(ast.parse(source)):
        start, end = statement.lineno, statement.end_lineno or statement.lineno
        for name, value in _named_values(trace, path, statement, values):
            worth = _worth(value)
            if worth is not None:
                yield Target(path, start, end, name), worth


def _named_values(
    trace: Trace, path: str, statement: Assignment, values: dict[Range, list[Value]]
) -> Iterator[tuple[str, Value]]:
    for names, ranges in _valued_parts(statement):
        for place in ranges:
            for value in values.get(place, ()):
                yield from _spread(names, value)
    own_names = assigned_names(statement)
    end = statement.end_lineno or statement.lineno
    for variable in trace.variables:
        is_here = variable.file == path and statement.lineno <= variable.line <= end
        if is_here and variable.name in own_names:
            yield variable.name, variable.tensor


def _values_by_range(trace: Trace, path: str) -> dict[Range, list[Value]]:
    """Collect, for each range of source, what the trace says it was worth."""
    values: dict[Range, list[Value]] = defaultdict(list)
    events: tuple[Op | ModuleCall, ...] = (*trace.ops, *trace.modules)
    for event in events:
        place = _range_of(event)
        if event.file != path or place is None or event.error is not None:
            continue
        if event.direct and (isinstance(event, ModuleCall) or event.level == "torch"):
            values[place].append(_value_of(event))
    return values


def _range_of(event: Op | ModuleCall) -> Range | None:
    place = (event.line, event.column, event.end_line, event.end_column)
    known = tuple(number for number in place if number is not None)
    return (known[0], known[1], known[2], known[3]) if len(known) == 4 else None


def _value_of(event: Op | ModuleCall) -> Value:
    if event.result is None:
        return event.outputs[0] if event.outputs else Other("None")
    return Container(event.result, event.outputs)


Names: TypeAlias = "str | tuple[Names | None, ...] | None"
"""The names of a target: one, or those of a tuple; None for what is not a plain name."""


def _valued_parts(statement: Assignment) -> Iterator[tuple[Names, tuple[Range, ...]]]:
    """Yield the targets of a statement, each with the ranges that may be its value."""
    if isinstance(statement, ast.AugAssign):
        yield _shape_of(statement.target), (_whole(statement),)
        return
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    for target in targets:
        if statement.value is not None:
            yield from _pairs(target, statement.value)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[Names, tuple[Range, ...]]]:
    sequences = (ast.Tuple, ast.List)
    if isinstance(target, sequences) and isinstance(value, sequences):
        elements = (*target.elts, *value.elts)
        if len(target.elts) == len(value.elts) and not any(
            isinstance(element, ast.Starred) for element in elements
        ):
            for part, worth in zip(target.elts, value.elts, strict=True):
                yield from _pairs(part, worth)
        return
    yield _shape_of(target), tuple(value_ranges(value))


def _shape_of(target: ast.expr) -> Names:
    if isinstance(target, ast.Name):
        return target.id
    if isinstance(target, (ast.Tuple, ast.List)):
        if any(isinstance(element, ast.Starred) for element in target.elts):
            return None
        return tuple(_shape_of(element) for element in target.elts)
    return None


def _spread(names: Names, value: Value) -> Iterator[tuple[str, Value]]:
    """Give the parts of a value to the names that took them."""
    if isinstance(names, str):
        yield names, value
    elif isinstance(names, tuple) and isinstance(value, Container):
        # What has keys is unpacked into them; of two items for one name the second stays.
        fits = value.keys is None and len(names) == len(value.items)
        for name, item in dict(zip(names, value.items, strict=True)).items() if fits else ():
            yield from _spread(name, item)


def value_ranges(value: ast.expr) -> Iterator[Range]:
    """Yield the ranges of the instructions that may produce the value of an expression."""
    if isinstance(value, ast.IfExp):
        yield from value_ranges(value.body)
        yield from value_ranges(value.orelse)
        return
    if isinstance(value, (ast.NamedExpr, ast.Await)):
        yield from value_ranges(value.value)
        return
    yield _whole(value)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        # The interpreter lets a method call start at the method's name when that stands on
        # another line than the start of the expression.
        method = value.func
        if method.end_lineno is not None and method.end_lineno != value.lineno:
            column = (method.end_col_offset or 0) - len(method.attr.encode())
            yield method.end_lineno, column, value.end_lineno or 0, value.end_col_offset or 0


def _whole(node: ast.expr | ast.stmt) -> Range:
    return node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0
