"""``shapetrace diff``: how long two large traces take, and how much memory."""

from __future__ import annotations

import dataclasses
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from shapetrace.events import codec
from shapetrace.events.fingerprint import CallFingerprints, Fingerprint
from shapetrace.events.model import Frame, ModuleCall, Op, Run, Tensor, Trace
from tests.bench.results import Bar, Result

BACKEND = Path(__file__).resolve().parents[2] / "python_backend"
MEGABYTE = 1_000_000
MODULES = 2_000
EACH = 50
"""Ops in a module."""

FORMS = (
    ("torch.nn.functional.linear", "linear()", "linear({0}, {1})"),
    ("torch.Tensor.add", "+", "{0} + {1}"),
    ("torch.Tensor.view", "view(2, 3)", "{0}.view(2, 3)"),
)


def diff(quick: bool) -> Result:
    """Two traces of a hundred thousand ops each: alike, edited, and with fingerprints."""
    bars: list[Bar] = []
    for case, is_edited, has_values in (
        ("alike", False, False),
        ("1 % edited", True, False),
        ("alike, with fingerprints", False, True),
    ):
        with tempfile.TemporaryDirectory() as folder:
            a = _trace("a" * 64, has_values)
            codec.save(a, Path(folder) / "a.json")
            b = _edited(a) if is_edited else a
            codec.save(b, Path(folder) / "b.json")
            del a, b
            runs = [_run(Path(folder), int(is_edited)) for _ in range(1 if quick else 3)]
        took = median(seconds for seconds, _ in runs)
        most = max(size for _, size in runs) / MEGABYTE
        case = f"{MODULES * EACH:,} ops in each, {case}"
        bars.append(Bar("diff", case, "≤ 5 s", f"{took:.1f} s", took <= 5))
        bars.append(Bar("diff", case, "≤ 500 MB", f"{most:.0f} MB", most <= 500))
    return Result(tuple(bars))


def _run(folder: Path, code: int) -> tuple[float, int]:
    """Seconds from start to end, and the most memory that the process held."""
    command = [sys.executable, "-m", "shapetrace", "diff", "a.json", "b.json", "-o", "diff.txt"]
    began = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, env={**os.environ, "PYTHONPATH": str(BACKEND)})
    _, status, usage = os.wait4(process.pid, 0)
    took = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != code:
        raise AssertionError(f"diff ended with {process.returncode}, not with {code}")
    return took, _bytes(usage)


def _bytes(usage: resource.struct_rusage) -> int:
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _trace(digest: str, has_values: bool) -> Trace:
    path = "/home/ada/project/model.py"
    run = Run(("train.py",), "3.11.7", "2.13.0", 1, None, None, "2026-01-01", {path: digest}, 1)
    lines = range(1, EACH + 20)
    frames = tuple(Frame(line, path, line, "Block.forward", 8, line, 30) for line in lines)
    value = Tensor((8, 128, 512), "float32", requires_grad=True, name="x")
    modules: list[ModuleCall] = []
    ops: list[Op] = []
    for number in range(MODULES):
        me = number * (EACH + 1) + 1
        name = f"layers.{number // 10}.part{number % 10}"
        modules.append(
            ModuleCall(
                id=me,
                parent=None,
                path=name,
                class_name="Block",
                detail="width=512",
                call=1,
                count=1,
                file=path,
                line=1 + number % 10,
                column=8,
                end_line=1 + number % 10,
                end_column=30,
                function="Net.forward",
                stack=(1,),
                inputs=(value,),
                input_names=("x",),
                outputs=(value,),
                result=None,
            )
        )
        ops += _ops(me, name, path, has_values)
    return Trace(run, tuple(modules), tuple(ops), frames)


def _ops(module: int, name: str, path: str, has_values: bool) -> Iterator[Op]:
    for index in range(EACH):
        source = Tensor((8, 128, 512 + index % 7), "float32", requires_grad=True, name="x")
        weight = Tensor((512, 512), "float32", kind="Parameter", name=f"{name}.weight")
        output = Tensor((8, 128, 512), "float32", requires_grad=True)
        line = 11 + index
        function, label, form = FORMS[index % 3]
        yield Op(
            id=module + 1 + index,
            name=function,
            label=label,
            form=form,
            module=module,
            function="Block.forward",
            file=path,
            line=line,
            column=8,
            end_line=line,
            end_column=30,
            direct=True,
            stack=(1, line),
            inputs=(source, weight),
            outputs=(output,),
            result=None,
            count=1,
            fingerprints=(_values(module + index),) if has_values else (),
        )


def _values(number: int) -> CallFingerprints:
    step = 1 + number / 7e6
    samples = tuple(step * sample / 3 for sample in range(-4, 4))
    print_ = Fingerprint("float32", 524_288, step / 9, step, -4 * step, 4 * step, samples)
    return CallFingerprints(1, 1, (print_,))


def _edited(trace: Trace) -> Trace:
    """The same of a program that was changed: one op in a hundred, and where all of them stand."""
    ops: list[Op] = []
    for number, op in enumerate(trace.ops):
        edited = dataclasses.replace(op, line=op.line + 3)
        match number % 300:
            case 0:
                edited = dataclasses.replace(edited, outputs=(Tensor((1, 2), "float32"),))
            case 100:
                edited = dataclasses.replace(edited, label=f"{op.label}*")
            case 200:
                continue
        ops.append(edited)
    run = dataclasses.replace(trace.run, files=dict.fromkeys(trace.run.files, "b" * 64))
    return dataclasses.replace(trace, run=run, ops=tuple(ops))
