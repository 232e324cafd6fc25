"""What a reader need not see: ops of a library's own code that tell nothing new.

A row ``linear`` below ``query  Linear(...)  f32[2,5,6] → f32[2,5,6]`` repeats that line, one call
of an optimizer makes hundreds of ops, and ``generate()`` has a hundred between two forward passes.
Ops that failed are never folded away.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby, islice
from typing import TypeAlias

from shapetrace.events.call_tree import Node, walk
from shapetrace.events.model import Frame, ModuleCall, Op, Trace
from shapetrace.views.call_text import outcome, total_calls
from shapetrace.views.place_text import installed_package, is_library
from shapetrace.views.shapes import CUT, holds_tensor
from shapetrace.views.styled import printable

_SHORTEST_FOLD = 3
"""So many library ops in a row, caused by one place, become one row."""

_MOST_NAMES = 5
"""Different ops that a fold names."""


@dataclass(frozen=True, slots=True)
class Fold:
    """Ops in a row that a library made for one place of the program."""

    ops: tuple[Op, ...]
    library: str
    at: Op
    """The first of them, as if made at that place itself."""

    @property
    def title(self) -> str:
        """``140 ops inside torch``."""
        return f"{total_calls(self.ops)} ops inside {printable(self.library)}"

    @property
    def names(self) -> str:
        """The different ops, as far as there is room: ``mul_, add_, sqrt, …``."""
        names = list(dict.fromkeys(op.name.rpartition(".")[2] for op in self.ops))
        shown = names[:_MOST_NAMES] + ([CUT] if len(names) > _MOST_NAMES else [])
        return printable(", ".join(shown))


Entry: TypeAlias = Node | Fold


class Folding:
    """Decides for one trace what is shown and what is folded."""

    def __init__(self, frames: Mapping[int, Frame], *, verbose: bool) -> None:
        self._frames = frames
        self._verbose = verbose
        self._outer_causes: dict[tuple[tuple[int, ...], bool], _Cause | None] = {}

    def entries(self, inside: Iterable[Node], module: ModuleCall | None) -> list[Entry]:
        """The entries to show for what ran in a module, or outside modules."""
        return list(self.stream(inside, module))

    def stream(self, inside: Iterable[Node], module: ModuleCall | None) -> Iterator[Entry]:
        """Like `entries`, but lazily."""
        if self._verbose:
            yield from inside
            return
        nodes: Iterator[Node] = (node for node in inside if not _is_without_tensors(node))
        if module is not None:
            first = list(islice(nodes, 2))
            if self.is_told_by(first, module):
                return
            nodes = chain(first, nodes)
        for cause, run in groupby(nodes, key=lambda node: self._cause(node, module)):
            if cause is None:
                yield from run
                continue
            causes = list(run)
            if len(causes) < _SHORTEST_FOLD:
                yield from causes
            else:
                yield _fold(causes, cause)

    def is_told_by(self, inside: Sequence[Node], module: ModuleCall) -> bool:
        """Whether all that ran in a module is one op that says what the module's row says."""
        ops = [node for node in inside if not _is_without_tensors(node)]
        if len(ops) != 1 or module.error is not None:
            return False
        op = ops[0].event
        cause = self._cause(ops[0], module)
        return cause is not None and isinstance(op, Op) and outcome(module) == outcome(op)

    def _cause(self, node: Node, module: ModuleCall | None) -> _Cause | None:
        """The library that made an op and the place that it did it for; None for other things."""
        op = node.event
        if not isinstance(op, Op) or _has_error(node):
            return None
        if module is None:
            key = (op.stack, op.direct)
            if key not in self._outer_causes:
                self._outer_causes[key] = self._outer_cause(op)
            cause = self._outer_causes[key]
            if cause is not None:
                return cause
        return None if op.direct or node.children else _Cause("torch", _own_frame(op))

    def _outer_cause(self, op: Op) -> _Cause | None:
        """The call by which the program entered library code, if that is where the op was made."""
        called = None
        for identity in reversed(op.stack):
            frame = self._frames.get(identity)
            if frame is None:
                return None
            if not is_library(frame.file):
                library = "torch" if called is None else installed_package(called.file)
                inside = called is not None or not op.direct
                return _Cause(library or "torch", frame) if inside else None
            called = frame
        return None


@dataclass(frozen=True, slots=True)
class _Cause:
    library: str
    frame: Frame


def _own_frame(op: Op) -> Frame:
    return Frame(
        id=op.stack[-1] if op.stack else -1,
        file=op.file,
        line=op.line,
        function=op.function,
        column=op.column,
        end_line=op.end_line,
        end_column=op.end_column,
    )


def _fold(nodes: Sequence[Node], cause: _Cause) -> Fold:
    ops = tuple(node.event for node in nodes if isinstance(node.event, Op))
    frame = cause.frame
    stack = ops[0].stack
    at = replace(
        ops[0],
        file=frame.file,
        line=frame.line,
        column=frame.column,
        end_line=frame.end_line,
        end_column=frame.end_column,
        function=frame.function,
        stack=stack[: stack.index(frame.id) + 1] if frame.id in stack else (),
    )
    return Fold(ops, cause.library, at)


def _has_error(node: Node) -> bool:
    return any(inside.event.error is not None for _, inside in walk((node,)))


def _is_without_tensors(node: Node) -> bool:
    """Return whether an op has no shape to show, such as one that switches gradients off."""
    op = node.event
    return (
        isinstance(op, Op)
        and not op.inputs
        and not any(map(holds_tensor, op.outputs))
        and op.error is None
        and not node.children
    )


def frames_of(trace: Trace) -> dict[int, Frame]:
    """The frames of a trace by their numbers."""
    return {frame.id: frame for frame in trace.frames}
