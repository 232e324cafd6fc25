"""Messages about a recording on stderr."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shapetrace.events.model import Trace

NOT_IMPORTED = "nothing to trace: the program did not import torch"
UNNOTICED = "nothing was traced: torch was imported in a way that Shapetrace cannot see"


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """A number and its noun: ``1 op``, ``12,345 ops``."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def progress_text(ops: int, passes: int, seconds: float) -> str:
    """``recording: 3 forward passes, 12,345 ops, 14 s``."""
    return f"recording: {_passes(passes)}, {counted(ops, 'op')}, {seconds:.0f} s"


def completion_text(ops: int, passes: int, file: str | None) -> str:
    """Said when a recording is over and its program goes on."""
    done = f"recorded {_passes(passes)} ({counted(ops, 'op')})"
    if file is not None:
        done += f", written to {file}"
    return f"{done}; the program runs on, Ctrl-C ends it and shows the trace"


def missing_text(trace: Trace, wanted_passes: int | None) -> str | None:
    """The part of the request that was not met; None if nothing is missing."""
    ops = _ops(trace)
    passes = trace.run.passes
    if not ops and not passes:
        return "nothing to trace: no tensor operation ran"
    if not passes:
        return f"no forward pass ran; recorded {counted(ops, 'op')}"
    if wanted_passes is not None and passes < wanted_passes:
        return f"the program ended after {passes} of {_passes(wanted_passes)}"
    return None


def recorded_text(trace: Trace) -> str:
    """How much was recorded: ``3 forward passes, 12,345 ops``."""
    return f"{_passes(trace.run.passes)}, {counted(_ops(trace), 'op')}"


def on_one_line(error: BaseException) -> str:
    """An error in one line: its class and what it says."""
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _ops(trace: Trace) -> int:
    return sum(op.count for op in trace.ops if op.level == "torch")


def _passes(number: int) -> str:
    return counted(number, "forward pass", "forward passes")
