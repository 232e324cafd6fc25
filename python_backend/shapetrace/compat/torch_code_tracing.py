"""``TracingMode``, the name of torch-code-tracing: ATen ops below the source lines that ran them.

out = model(x)                                             # train.py:9 in <module>:
│ ⬇️ MHA  (f32[2,5,6]) -> f32[2,5,6]
│ q = self.query(x)                                     # mha.py:30 in MHA.forward:
│ │ ⬇️ query (Linear)  (f32[2,5,6]) -> f32[2,5,6]
│ │ │ # linear(f32[2,5,6], f32[6,6], f32[6]) -> f32[2,5,6]
│ │ │ │ # view(f32[2,5,6], [10, 6]) -> f32[10,6]
│ │ │ │ # addmm(f32[6], f32[10,6], f32[6,6]) -> f32[10,6]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from dis import Positions
from types import TracebackType
from typing import Self

from shapetrace._errors import AlreadyTracingError
from shapetrace.compat.output import RUNNING_ALREADY, joined, show, view_of, warn
from shapetrace.events import model
from shapetrace.recording import DEFAULT_WIDTH, LiveRecording, trace
from shapetrace.views import StyledText, ViewOptions
from shapetrace.views.calls import error_text, filled_form, outcome
from shapetrace.views.statements import Sources
from shapetrace.views.terminal import to_text


@dataclass(frozen=True, slots=True)
class StackFrame:
    """A place that was running, named as ``inspect.FrameInfo`` names its parts."""

    filename: str
    lineno: int
    function: str
    code_context: tuple[str, ...] | None
    """All lines of the statement, less their indentation; None where there is no source."""
    positions: Positions
    """Lines from 1 and columns from 0, columns in bytes of UTF-8."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The calls of one operator from one place that had the same inputs and output."""

    op_str: str
    """``view(f32[2,5,6], [10, 6]) -> f32[10,6]``; without the arrow if it failed."""
    stack: tuple[StackFrame, ...]
    """Outermost first."""
    count: int = 1
    """How many calls these are: a loop is one trace, not one for each time round."""
    error: str | None = None
    """What it raised: ``RuntimeError: mat1 and mat2 shapes ...``."""


class TracingMode:
    """Records the ATen ops that a ``with`` block runs, and prints them below their source lines.

    Positional arguments are taken and ignored. They were for the torch mode that this once was; now
    it is a context manager, whose own modes stand where they disturb nobody else's.
    """

    def __init__(
        self,
        *mode_arguments: object,
        quiet: bool = False,
        succinct: bool = True,
        color: bool = True,
    ) -> None:
        self.quiet = quiet
        """Print nothing at the end of the block: ``traces``, ``print`` and ``format`` have it."""
        self.succinct = succinct
        """Print one row for many ops in a row that torch's own code made from one place."""
        self.color = color
        """Print in colour, where stdout is a terminal and NO_COLOR is not set."""
        self._entered: list[LiveRecording | None] = []
        """One for each block that is running; None where another recording was in the way."""
        self._recordings: list[LiveRecording] = []

    @property
    def traces(self) -> list[Trace]:
        """What ran so far, in all blocks; in the order in which it was first seen."""
        return [one for recording in self._recordings for one in _traces(recording.trace)]

    def __enter__(self) -> Self:
        recording = trace(level="aten")
        try:
            recording.start(depth=2)
        except AlreadyTracingError:
            warn(f"TracingMode records nothing: {RUNNING_ALREADY}.")
            self._entered.append(None)
            return self
        self._entered.append(recording)
        self._recordings.append(recording)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        recording = self._entered.pop()
        if recording is None:
            return
        try:
            recording.stop()
            if not self.quiet:
                show(self._listing([recording], None, None), may_color=self.color)
        except Exception as failure:
            # Ours to regret, not the program's to handle.
            warn(f"TracingMode cannot show what it recorded: {type(failure).__name__}: {failure}")

    def print(self, *, succinct: bool | None = None) -> None:
        """Print what all blocks so far have run."""
        if self._recordings:
            show(self._listing(self._recordings, succinct, None), may_color=self.color)

    def format(self, *, color: bool = False, succinct: bool | None = None) -> str:
        """What all blocks so far have run, as text; empty before the first one."""
        listing = self._listing(self._recordings, succinct, DEFAULT_WIDTH)
        return to_text(listing, color=color)

    def _listing(
        self, recordings: list[LiveRecording], succinct: bool | None, width: int | None
    ) -> StyledText:
        folded = self.succinct if succinct is None else succinct
        return joined(
            view_of(recording.trace, "listing", verbose=not folded, width=width)
            for recording in recordings
        )


def _traces(recorded: model.Trace) -> Iterator[Trace]:
    """The ATen ops of a recording, and the calls that failed before they came to any."""
    frames = {frame.id: frame for frame in recorded.frames}
    sources = Sources(ViewOptions().read_source, recorded.run.files)
    failed_below = {op.parent for op in recorded.ops if op.error is not None}
    stacks: dict[tuple[int, ...], tuple[StackFrame, ...]] = {}
    for op in recorded.ops:
        if op.level != "aten" and (op.error is None or op.id in failed_below):
            continue
        stack = stacks.get(op.stack)
        if stack is None:
            stack = tuple(_stack_frame(frames[id], sources) for id in op.stack if id in frames)
            stacks[op.stack] = stack
        call = filled_form(op).removeprefix("aten.")
        if op.error is not None:
            yield Trace(call, stack, op.count, error_text(op))
        else:
            yield Trace(f"{call} -> {outcome(op)}", stack, op.count)


def _stack_frame(frame: model.Frame, sources: Sources) -> StackFrame:
    return StackFrame(
        filename=frame.file,
        lineno=frame.line,
        function=frame.function.rpartition(".")[2],
        code_context=sources.excerpt(frame).lines,
        positions=Positions(frame.line, frame.end_line, frame.column, frame.end_column),
    )
