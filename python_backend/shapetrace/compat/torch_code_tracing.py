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

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from dis import Positions
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from shapetrace._asynchronous import (
    called_by_program,
    clean_if_asynchronous,
    is_asynchronous,
    surely,
)
from shapetrace._errors import AlreadyTracingError
from shapetrace._exception_table import catching_everywhere
from shapetrace.compat.output import (
    RUNNING_ALREADY,
    colored,
    joined,
    live_output,
    show,
    view_of,
    warn,
    write,
)
from shapetrace.events import model
from shapetrace.live import LiveOutput
from shapetrace.process.early_exit import EarlyExit
from shapetrace.recording import DEFAULT_WIDTH, LiveRecording, trace
from shapetrace.views import StyledText, ViewOptions
from shapetrace.views.call_text import error_text, filled_form, outcome
from shapetrace.views.source_excerpts import Sources
from shapetrace.views.styled import printable
from shapetrace.views.terminal_text import to_text

if TYPE_CHECKING:
    import torch

    DTYPE_ABBRS: dict[torch.dtype, str]
    """The dtypes as torch-code-tracing writes them; ``TracingMode`` has its own names."""


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

    @property
    def index(self) -> int | None:
        """Where in ``code_context`` the line is; None where there is no source."""
        return None if self.code_context is None else 0


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
    """The exception: ``RuntimeError: mat1 and mat2 shapes ...``."""


class _Renamed:
    """An attribute that torch-code-tracing has under another name."""

    def __init__(self, name: str, *, is_negated: bool = False) -> None:
        self._name = name
        self._is_negated = is_negated

    def __get__(self, owner: Any, kind: type) -> Any:
        return self if owner is None else getattr(owner, self._name) != self._is_negated

    def __set__(self, owner: Any, value: bool) -> None:
        setattr(owner, self._name, bool(value) != self._is_negated)


class TracingMode:
    """Records the ATen ops that a ``with`` block runs, and prints them below their source lines.

    Positional arguments and ``_dispatch_key`` are taken and ignored. They were for the torch mode
    that this once was; now it is a context manager, whose own modes are where they disturb no
    others.

    A subclass may override what it could there. Its ``__torch_dispatch__`` gets each op, and
    returns what the op returns. ``_add_trace``, ``_print_trace`` and ``_trace_str`` are called when
    the block ends: for each trace, to keep it in ``traces``, and to print it. What is not in
    ``traces``, or is taken out, is not in the text either.
    """

    _verbose = _Renamed("quiet", is_negated=True)
    _color = _Renamed("color")
    _succinct = _Renamed("succinct")

    @called_by_program
    def __init__(
        self,
        *mode_arguments: object,
        quiet: bool = False,
        succinct: bool = True,
        color: bool = True,
        live: bool | None = None,
        _dispatch_key: object = None,
    ) -> None:
        self.quiet = quiet
        """Print nothing at the end of the block: ``traces``, ``print`` and ``format`` have it."""
        self.succinct = succinct
        """Print one row for many ops in a row that torch's own code made from one place."""
        self.color = color
        """Print in colour, where stdout is a terminal and NO_COLOR is not set."""
        self.live = live
        """Print each op as it comes, and once, in place of all of them at the end of the block.
        None is for that where stdout is a terminal."""
        self._early_exit = EarlyExit(self._tell_before_end)
        self._blocks: list[_Block] = []
        """Those that are running."""
        self._changing: _Block | None = None
        """One that is just beginning or ending."""
        self._kept: list[Trace] = []
        """The ops of the blocks that have ended."""
        self._sources: dict[int, _Told] = {}
        """The ops that the kept traces were made of, by the ids of the traces."""

    @property
    def traces(self) -> list[Trace]:
        """The ops so far of all blocks, in the order of first appearance.

        Between blocks it is the list that is kept: what is taken out of it is gone.
        """
        running = self._running()
        return [*self._kept, *(each.trace for each in running)] if running else self._kept

    @traces.setter
    def traces(self, traces: Iterable[Trace]) -> None:
        self._kept = list(traces)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an op; for subclasses, which may do something else."""
        return func(*args, **({} if kwargs is None else kwargs))

    @catching_everywhere
    def __enter__(self) -> Self:
        try:
            self._begin()
            return self
        except BaseException as error:
            surely(self._give_up)
            clean_if_asynchronous(error)
            raise

    def _begin(self) -> None:
        block = self._changing = _Block()
        is_own = self._overrides("_add_trace", "_print_trace", "_trace_str")
        if not self.quiet and not is_own:
            block.live = live_output(self.live, "aten", may_color=self.color)
        recording = block.recording = trace(level="aten")
        try:
            recording.start(_depth_of_block(), block.live)
        except AlreadyTracingError:
            block.recording = None
            warn(f"TracingMode records nothing: {RUNNING_ALREADY}.")
        if self._overrides("__torch_dispatch__"):
            block.mode = _dispatching(self)
            block.mode.__enter__()
        self._blocks.append(block)
        if block.recording is not None:
            self._early_exit.watch()
        self._changing = None

    @catching_everywhere
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            block = self._changing = self._blocks[-1]
            self._end(block, error)
            self._changing = None
        except BaseException as another:
            surely(self._give_up, True)
            clean_if_asynchronous(another)
            raise

    def _end(self, block: _Block, error: BaseException | None) -> None:
        block.leave_mode()
        self._blocks.pop()
        recording = block.recording
        if recording is None:
            return
        self._early_exit.cancel()
        known = len(self._kept)
        try:
            recording.__exit__(None, error, None)
            new = list(_told(recording))
        except Exception as failure:
            self._regret(failure)
            return
        for each in new:
            self._sources[id(each.trace)] = each
            self._add_trace(each.trace)
        if block.live is not None:
            block.live.step(final=True)
        elif not self.quiet:
            self._print(known, self.succinct)

    def _tell_before_end(self, reason: str | None) -> None:
        """Print what is known so far, while the block runs: the process will not see its end."""
        if reason is not None and not self.quiet:
            warn(reason)
        live = self._blocks[-1].live
        if live is not None:
            live.step(final=True)
        elif not self.quiet:
            self._print(len(self._kept), self.succinct)

    def _give_up(self, is_ending: bool = False) -> None:
        """Leave nothing of a block that could not begin, or come to its end."""
        if is_ending and self._changing is None:
            self._changing = self._blocks[-1]
        block = self._changing
        if block is not None:
            block.leave_mode()
            if block.recording is not None:
                self._early_exit.cancel()
                block.recording.stop()
            self._blocks = [each for each in self._blocks if each is not block]
            self._changing = None

    @called_by_program
    def print(self, *, succinct: bool | None = None) -> None:
        """Print what all blocks so far have run."""
        self._print(0, self.succinct if succinct is None else succinct)

    @called_by_program
    def format(self, *, color: bool = False, succinct: bool | None = None) -> str:
        """The ops so far of all blocks, as text; empty before the first one."""
        folded = self.succinct if succinct is None else succinct
        if self._overrides("_trace_str"):
            indices = range(len(self.traces))
            return "\n".join(self._trace_str(at, color, folded) for at in indices)
        return to_text(_listing(self._everything(), folded, DEFAULT_WIDTH), color=color)

    def _add_trace(self, trace: Trace) -> None:
        """Keep a trace; called for each one that a block has run when it ends."""
        self._kept.append(trace)

    def _print_trace(self, index: int, succinct: bool) -> None:
        """Print one of ``traces``."""
        write(self._trace_str(index, colored(self.color), succinct) + "\n")

    def _trace_str(self, index: int, color: bool, succinct: bool) -> str:
        """One of ``traces`` as text: the statements that it came from, and the op."""
        everything = self._everything()
        if not everything:
            return "<no traces>"
        listing = _listing([everything[index]], succinct, DEFAULT_WIDTH)
        return to_text(listing, color=color).rstrip("\n")

    def _print(self, first: int, succinct: bool) -> None:
        """Print the traces from one on."""
        if self._overrides("_print_trace", "_trace_str"):
            for index in range(first, len(self.traces)):
                self._print_trace(index, succinct)
            return
        try:
            text = _listing(self._everything()[first:], succinct, None)
            if text.lines:
                show(text, may_color=self.color)
        except Exception as failure:
            self._regret(failure)

    def _running(self) -> list[_Told]:
        recordings = [block.recording for block in self._blocks]
        return [each for it in recordings if it is not None for each in _told(it)]

    def _everything(self) -> list[_Told]:
        """The traces, where a subclass may have put its own: these are not in the recording."""
        kept = []
        for each in self._kept:
            known = self._sources.get(id(each))
            is_known = known is not None and known.trace is each
            kept.append(known if known is not None and is_known else _Told(each, None, 0))
        return kept + self._running()

    def _overrides(self, *names: str) -> bool:
        """Return whether a subclass, or this very object, has its own of any of these methods."""
        return any(
            getattr(type(self), name) is not getattr(TracingMode, name) or name in vars(self)
            for name in names
        )

    def _regret(self, failure: Exception) -> None:
        """Report a fault of ours, which the program must not have to handle."""
        if is_asynchronous(failure):
            raise failure
        warn(f"TracingMode cannot show what it recorded: {type(failure).__name__}: {failure}")


class _Block:
    """The state of one running `with` block."""

    recording: LiveRecording | None = None
    """None where another one was in the way."""
    live: LiveOutput | None = None
    """The printer of its ops."""
    mode: Any = None
    """Passes its ops to a subclass, if that overrides the methods for them."""

    def leave_mode(self) -> None:
        """Take the mode off the stack, if it is there."""
        if self.mode is None:
            return
        from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

        if any(each is self.mode for each in _get_current_dispatch_mode_stack()):
            self.mode.__exit__(None, None, None)


def _dispatching(tracing: TracingMode) -> Any:
    """A mode of torch's that gives each op to a subclass's ``__torch_dispatch__``."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Dispatching(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return tracing.__torch_dispatch__(func, types, args, kwargs)

    return Dispatching()  # type: ignore[no-untyped-call]


def _depth_of_block() -> int:
    """How far out of what ``_begin`` calls the block is: a subclass may have an ``__enter__``."""
    depth = 2
    while sys._getframe(depth).f_code.co_name == "__enter__":
        depth += 1
    return depth


def _listing(traces: Iterable[_Told], succinct: bool, width: int | None) -> StyledText:
    """The listings of all recordings that any of these traces are of, less the other ops."""
    texts: list[StyledText] = []
    of: dict[int, tuple[LiveRecording, set[int]]] = {}
    for each in traces:
        if each.recording is None:
            texts.append(StyledText(((("# " + printable(each.trace.op_str), "call"),),)))
        else:
            of.setdefault(id(each.recording), (each.recording, set()))[1].add(each.op)
    for recording, ops in of.values():
        recorded = _only(recording.trace, ops)
        texts.append(view_of(recorded, "listing", verbose=not succinct, width=width))
    return joined(texts)


def _only(recorded: model.Trace, wanted: set[int]) -> model.Trace:
    """A recording with just these ops, and those of the levels above that called them."""
    told = {op for op, _ in _ops_told(recorded)}
    if told == wanted:
        return recorded
    by_id = {op.id: op for op in recorded.ops}
    kept: set[int] = set()
    for id in wanted:
        above: int | None = id
        while above is not None and above in by_id and above not in kept:
            kept.add(above)
            above = by_id[above].parent
    return replace(recorded, ops=tuple(op for op in recorded.ops if op.id in kept))


@dataclass(frozen=True, slots=True)
class _Told:
    """A trace, and what it was made of."""

    trace: Trace
    recording: LiveRecording | None
    op: int


def _ops_told(recorded: model.Trace) -> Iterator[tuple[int, model.Op]]:
    """The ATen ops of a recording, and the calls that failed before they came to any."""
    failed_below = {op.parent for op in recorded.ops if op.error is not None}
    for op in recorded.ops:
        if op.level == "aten" or (op.error is not None and op.id not in failed_below):
            yield op.id, op


def _told(recording: LiveRecording) -> Iterator[_Told]:
    """The traces of a recording."""
    recorded = recording.trace
    frames = {frame.id: frame for frame in recorded.frames}
    sources = Sources(ViewOptions().read_source, recorded.run.files)
    stacks: dict[tuple[int, ...], tuple[StackFrame, ...]] = {}
    for id, op in _ops_told(recorded):
        stack = stacks.get(op.stack)
        if stack is None:
            stack = tuple(_stack_frame(frames[id], sources) for id in op.stack if id in frames)
            stacks[op.stack] = stack
        call = filled_form(op).removeprefix("aten.")
        if op.error is not None:
            one = Trace(call, stack, op.count, error_text(op))
        else:
            one = Trace(f"{call} -> {outcome(op)}", stack, op.count)
        yield _Told(one, recording, id)


def _stack_frame(frame: model.Frame, sources: Sources) -> StackFrame:
    return StackFrame(
        filename=frame.file,
        lineno=frame.line,
        function=frame.function.rpartition(".")[2],
        code_context=sources.excerpt(frame).lines,
        positions=Positions(frame.line, frame.end_line, frame.column, frame.end_column),
    )


def __getattr__(name: str) -> object:
    """``DTYPE_ABBRS``, for which torch is needed, which is loaded by who records."""
    if name != "DTYPE_ABBRS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import torch

    found = {getattr(torch, dtype, None): short for dtype, short in _DTYPE_ABBRS.items()}
    found.pop(None, None)  # of a torch that is older than the dtype
    globals()[name] = found
    return found


_DTYPE_ABBRS = {
    "bfloat16": "bf16",
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "float8_e4m3fn": "f8e4m3fn",
    "float8_e5m2": "f8e5m2",
    "float8_e4m3fnuz": "f8e4m3fnuz",
    "float8_e5m2fnuz": "f8e5m2fnuz",
    "float8_e8m0fnu": "f8e8m0fnu",
    "complex32": "c32",
    "complex64": "c64",
    "complex128": "c128",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "bool": "b8",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "bits16": "b16",
    "bits1x8": "b1x8",
}
