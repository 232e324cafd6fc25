"""What a program does without us and under the recorder, and what the trace says of it, as text.

A program is source text with a function ``main``. Each run of it is in a fresh namespace but in the
same file, so that nothing but the recorder can make a difference between two runs.
"""

from __future__ import annotations

import linecache
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, fields, is_dataclass
from difflib import unified_diff
from pathlib import Path
from textwrap import dedent, indent
from types import ModuleType, NoneType
from typing import Any, Protocol

import torch

import shapetrace
from shapetrace.events.model import ModuleCall, Op, Trace
from shapetrace.recording import LiveRecording
from shapetrace.views.shapes import result_text, value_text, values_text

LEVELS = ("torch", "aten")

PRELUDE = (
    "import torch; from torch import nn; import torch.nn.functional as F; "
    "import warnings, logging, threading, sys, contextlib\n"
)
"""One line, so that the second line of a program is the first of its text."""


class Traced(Protocol):
    """Traces a program, given as text."""

    def __call__(self, text: str, **options: object) -> Trace: ...


class Harmless(Traced, Protocol):
    """The same, and fails where tracing makes a difference."""


@dataclass(frozen=True)
class Outcome:
    """The visible behaviour of a program's run."""

    result: object
    error: BaseException | None
    traceback: str
    """Of the exception that ended it, as the interpreter prints it."""
    warnings: tuple[str, ...]
    chance: torch.Tensor
    """The state of the random generator afterwards."""

    def facts(self) -> dict[str, object]:
        """The part by which two runs are compared."""
        return {
            "result": bits_of(self.result),
            "traceback": self.traceback,
            "warnings": "\n".join(self.warnings),
            "chance": self.chance.numpy().tobytes(),
        }

    def differences(self, other: Outcome) -> str:
        """Say what is not the same in another run; nothing when all is."""
        theirs = other.facts()
        return "\n".join(
            f"{name} differs: {_first_difference(fact, theirs[name])}"
            for name, fact in self.facts().items()
            if fact != theirs[name]
        )


def _first_difference(one: object, other: object, place: str = "") -> str:
    """Where two nests of plain values begin to differ, and how."""
    if isinstance(one, str) and isinstance(other, str):
        lines = unified_diff(one.splitlines(), other.splitlines(), lineterm="", n=1)
        return "\n".join([place, *lines])
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        for index, (item, others) in enumerate(zip(one, other, strict=False)):
            if item != others:
                return _first_difference(item, others, f"{place}[{index}]")
    return f"{place} {one!r} became {other!r}"[:2000]


@dataclass(frozen=True)
class Program:
    """A program in a file."""

    path: Path

    @classmethod
    def write(cls, text: str, directory: Path) -> Program:
        """Put a program's text into a file."""
        path = directory / "program.py"
        path.write_text(PRELUDE + dedent(text).removeprefix("\n"), encoding="utf-8")
        linecache.checkcache(str(path))
        return cls(path)

    def load(self) -> dict[str, Any]:
        """Run the file and return its names; it can be imported from then on."""
        module = sys.modules["program"] = ModuleType("program")
        module.__file__ = str(self.path)
        code = compile(self.path.read_bytes(), str(self.path), "exec", dont_inherit=True)
        exec(code, vars(module))
        return vars(module)

    def run(self, recording: LiveRecording | None = None) -> Outcome:
        """Run the file and then its ``main``, and note everything that can be seen of it."""
        torch.manual_seed(0)
        result: object = None
        error: BaseException | None = None
        text = ""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            main = self.load()["main"]
            with recording if recording is not None else nullcontext():
                try:
                    result = main()
                except BaseException as raised:
                    error = raised
                    text = without_hand_over("".join(traceback.format_exception(raised)))
        noted = tuple(
            f"{Path(each.filename).name}:{each.lineno} {each.category.__name__} {each.message}"
            for each in caught
        )
        return Outcome(result, error, text, noted, torch.get_rng_state())


def without_hand_over(text: str) -> str:
    """A formatted traceback without the frames by which torch hands a call over to any mode.

    They are torch's own, and stay where a program catches the error outside of any module.
    """
    entries = re.split(r"(?m)^(?=  File )", text)
    kept: list[str] = []
    for entry in entries:
        if ", in handle_torch_function\n" in entry:
            kept.pop()  # the first run of the function, which only handed over
        else:
            kept.append(entry)
    return "".join(kept)


def bits_of(value: object) -> object:
    """A value with the tensors in it reduced to what can be compared, to the last bit."""
    if isinstance(value, torch.Tensor):
        return tensor_bits(value)
    if isinstance(value, dict):
        return {str(key): bits_of(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [bits_of(item) for item in value]
    if is_dataclass(value):
        return [bits_of(getattr(value, field.name)) for field in fields(value)]
    return value if isinstance(value, (int, float, str, bytes, NoneType)) else type(value).__name__


def tensor_bits(tensor: torch.Tensor) -> tuple[object, ...]:
    """The class, the metadata and the bytes of a dense tensor; of others what they say."""
    facts = (type(tensor).__name__, str(tensor.dtype), str(tensor.device), tensor.requires_grad)
    try:
        shape, strides = tuple(tensor.shape), tensor.stride()
        storage = tensor.detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
    except Exception:
        return (*facts, str(tensor.layout), repr(tensor))
    return (*facts, shape, strides, storage)


def check_harmless(program: Program, may_fail: bool = False, **options: Any) -> Trace:
    """Run a program without us, traced, and without us again; fail where they differ."""
    recording = shapetrace.trace(**options)
    torch.set_warn_always(True)
    try:
        # What happens once in a process happens in the first run.
        _, before, traced, after = [program.run(each) for each in (None, None, recording, None)]
    finally:
        torch.set_warn_always(False)
    assert may_fail or before.error is None, before.traceback
    assert not before.differences(after), f"not as before: {before.differences(after)}"
    assert not before.differences(traced), f"traced: {before.differences(traced)}"
    assert not faults_of(recording.trace), faults_of(recording.trace)
    return recording.trace


def faults_of(trace: Trace) -> list[str]:
    """The faults of the recorder."""
    return [each.where for each in trace.coverage if each.reason.startswith("fault")]


def trace_of(function: Callable[[], object], **options: Any) -> Trace:
    """The trace of one call."""
    with shapetrace.trace(**options) as recording:
        function()
    assert not faults_of(recording.trace), faults_of(recording.trace)
    return recording.trace


def outline(trace: Trace) -> str:
    """The trace as an indented text: module calls, the ops in them, the kernels under those.

    Module calls read ``path: Class(inputs) -> outputs``, ops ``form(inputs) -> outputs``; ``×n``
    counts, ``!`` tells of an error, ``inside`` says that the program itself did not make the call.
    """
    return "".join(f"{line}\n" for line in _lines(trace, None, None))


def _lines(trace: Trace, module: int | None, parent: int | None) -> Iterator[str]:
    calls = [call for call in trace.modules if parent is None and call.parent == module]
    ops = [op for op in trace.ops if op.parent == parent and (parent or op.module == module)]
    events: list[Op | ModuleCall] = [*calls, *ops]
    for event in sorted(events, key=lambda event: event.id):
        if isinstance(event, Op):
            yield op_line(event)
            below = _lines(trace, module, event.id)
        else:
            yield module_line(event)
            below = _lines(trace, event.id, None)
        yield from (indent(line, "  ") for line in below)


def op_line(op: Op) -> str:
    """One op on one line."""
    result = f"!{op.error.type}" if op.error else result_text(op.outputs, op.result)
    return (
        f"{op.label} ({values_text(op.inputs)}) -> {result}"
        + _count(op.count)
        + ("" if op.direct or op.level == "aten" else " inside")
        + (f" [{op.thread}]" if op.thread else "")
    )


def module_line(call: ModuleCall) -> str:
    """One module call on one line."""
    inputs = ", ".join(map(value_text, call.inputs))
    result = f"!{call.error.type}" if call.error else result_text(call.outputs, call.result)
    return (
        f"{call.path or 'root'}: {call.class_name}({inputs}) -> {result}"
        + _count(call.count)
        + (f" ({call.note})" if call.note else "")
    )


def _count(count: int | None) -> str:
    if count is None:
        return " uncounted"
    return "" if count == 1 else f" ×{count}"


def counts_of(recording: LiveRecording) -> dict[str, int]:
    """How often each operation was seen."""
    seen: dict[str, int] = {}
    for op in recording.ops:
        seen[op.label] = seen.get(op.label, 0) + op.count
    return seen


def names_of(trace: Trace) -> list[str]:
    """The short names of the torch-level ops, in order."""
    return [op.name.rsplit(".", 1)[-1] for op in trace.ops if op.level == "torch"]


def paths_of(trace: Trace) -> list[str]:
    """The paths of the module calls, in order."""
    return [call.path for call in trace.modules]


def unindented(text: str) -> str:
    """An expected outline as it is written in a test."""
    return dedent(text).removeprefix("\n")
