"""Real programs with torch in them, run from the command line and traced."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from shapetrace.events import codec
from shapetrace.events.model import Trace
from tests.python.e2e.cli.programs import (
    ROOT,
    Outcome,
    by_both,
    environment,
    python,
    shapetrace,
    without_progress,
)

pytestmark = pytest.mark.e2e

MODEL = """
    import os, signal, sys, threading, time
    assert "torch" not in sys.modules
    import torch
    from torch import nn

    net = nn.Linear(4, 2)

    def step(number):
        loss = net(torch.zeros(3, 4)).exp().sum()
        loss.backward()
        # No optimizer of torch's, with which it imports TorchDynamo: one of the examples has one.
        with torch.no_grad():
            for parameter in net.parameters():
                parameter -= 0.1 * parameter.grad
        print("step", number, flush=True)
"""

LOOP = """
    import atexit
    atexit.register(print, "exit handler")
    try:
        for number in range(4):
            step(number)
    finally:
        print("finally")
    print("end")
"""


def write(folder: Path, body: str, name: str = "script.py") -> Path:
    path = folder / name
    path.write_text(textwrap.dedent(MODEL) + textwrap.dedent(body))
    return path


def run(folder: Path, *arguments: str, extra: dict[str, str] | None = None) -> Outcome:
    outcome = shapetrace("run", *arguments, cwd=folder, extra=extra)
    return replace(outcome, stderr=without_progress(outcome.stderr))


def labels(trace: Trace) -> list[str]:
    return [op.label for op in trace.ops if op.direct]


def calls(trace: Trace, label: str) -> int:
    return sum(op.count for op in trace.ops if op.label == label)


def test_one_pass_with_its_step_and_the_trace_after_all_output(tmp_path: Path) -> None:
    write(tmp_path, LOOP)
    outcome = run(tmp_path, "-o", "run.json", "script.py")
    assert outcome.code == 0
    own = [*(f"step {number}" for number in range(4)), "finally", "end", "exit handler"]
    lines = outcome.stdout.splitlines()
    assert lines[: len(own)] == own
    assert lines[len(own)].startswith("script.py · torch ")
    assert any("f32[3,4] → f32[3,2]" in line for line in lines)
    assert re.fullmatch(r"shapetrace: wrote run.json: 1 forward pass, \d+ ops\n", outcome.stderr)

    trace = codec.load(tmp_path / "run.json")
    assert trace.run.passes == 1
    assert [module.count for module in trace.modules] == [1]
    # The loss and the backward pass are in it, the second forward pass is not.
    assert (calls(trace, "exp()"), calls(trace, "backward()")) == (1, 1)

    shown = shapetrace("show", "--view", "tree", "--width", "100", "run.json", cwd=tmp_path)
    assert shown == Outcome(0, "\n".join(lines[len(own) :]) + "\n", "")


def test_several_passes_and_all(tmp_path: Path) -> None:
    write(tmp_path, LOOP)
    two = run(tmp_path, "--passes", "2", "--view", "none", "script.py")
    every = run(tmp_path, "--passes", "all", "--view", "json", "script.py")
    nine = run(tmp_path, "--passes", "9", "--view", "markdown", "script.py")
    assert (two.code, every.code, nine.code) == (0, 0, 0)
    assert two.stdout.endswith("exit handler\n")
    assert re.fullmatch(r"shapetrace: recorded 2 forward passes, \d+ ops\n", two.stderr)
    text = every.stdout
    assert calls(codec.loads(text[text.index("{") :]), "exp()") == 4
    assert every.stderr == ""
    assert nine.stderr == "shapetrace: the program ended after 4 of 9 forward passes\n"


def test_level_aten_and_other_options_reach_the_recorder(tmp_path: Path) -> None:
    write(tmp_path, LOOP)
    options = ["--level", "aten", "--settle-after", "1", "--passes", "all", "--expand-fused"]
    outcome = run(tmp_path, *options, "--view", "none", "-o", "run.json", "script.py")
    assert outcome.code == 0
    trace = codec.load(tmp_path / "run.json")
    assert "aten.addmm" in {op.name for op in trace.ops if op.level == "aten"}
    assert calls(trace, "exp()") < 4


def test_equal_runs_have_equal_fingerprints_and_others_do_not(tmp_path: Path) -> None:
    body = """
        torch.manual_seed(0)
        net = nn.Linear(4, 2)
        with torch.no_grad():
            net.bias += float(sys.argv[1])
        step(0)
    """
    write(tmp_path, body)
    traces = []
    for bias in ("0", "0", "0.01"):
        outcome = run(tmp_path, "--fingerprint", "-o", "run.json", "script.py", bias)
        assert outcome.code == 0
        assert "Values: " in outcome.stdout
        traces.append(codec.load(tmp_path / "run.json"))
    one, again, other = [
        {op.label: op.fingerprints for op in trace.ops if op.direct} for trace in traces
    ]
    assert one == again
    assert one["exp()"] != other["exp()"]
    assert one["exp()"][0].outputs[0].count == 6
    without = run(tmp_path, "-o", "run.json", "script.py", "0")
    assert "Values: " not in without.stdout
    assert "fingerprints" not in (tmp_path / "run.json").read_text()


def test_stop_after_trace(tmp_path: Path) -> None:
    write(tmp_path, LOOP)
    outcome = run(tmp_path, "--stop-after-trace", "--passes", "2", "-o", "a.json", "script.py")
    assert outcome.code == 0
    assert outcome.stdout.startswith("step 0\nfinally\nexit handler\nscript.py · torch ")
    assert outcome.stderr.count("\n") == 1
    assert calls(codec.load(tmp_path / "a.json"), "exp()") == 1


def test_stopping_a_program_that_swallows_it(tmp_path: Path) -> None:
    body = """
        try:
            step(0)
        except:
            print("swallowed", sys.exc_info()[0])
        try:
            while True:
                time.sleep(60)
        finally:
            print("finally")
    """
    write(tmp_path, body)
    outcome = run(tmp_path, "--stop-after-trace", "--view", "table", "script.py")
    assert (outcome.code, outcome.stderr) == (0, "")
    assert outcome.stdout.startswith("swallowed <class 'SystemExit'>\nfinally\nscript.py · torch ")


def test_stopping_a_program_that_will_not_end(tmp_path: Path) -> None:
    body = """
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            step(0)
        except:
            print("swallowed")
        while True:
            time.sleep(60)
    """
    write(tmp_path, body)
    outcome = run(tmp_path, "--stop-after-trace", "--view", "table", "script.py")
    assert outcome.code == 0
    assert outcome.stdout.startswith("swallowed\nscript.py · torch ")
    assert outcome.stderr == (
        "shapetrace: the program did not end by itself; it was ended without its "
        "remaining exit handlers\n"
    )


def test_stopping_when_the_pass_ran_in_another_thread(tmp_path: Path) -> None:
    body = """
        threading.Thread(target=step, args=(0,)).start()
        try:
            threading.Event().wait()
        finally:
            print("finally")
    """
    write(tmp_path, body)
    outcome = run(tmp_path, "--stop-after-trace", "--view", "table", "script.py")
    assert (outcome.code, outcome.stderr) == (0, "")
    assert outcome.stdout.startswith("finally\nscript.py · torch ")


@pytest.mark.parametrize("arguments", [("script.py",), ("-m", "script")])
def test_an_error_in_forward(arguments: tuple[str, ...], tmp_path: Path) -> None:
    body = """
        def warn():
            import warnings
            warnings.warn("from here", stacklevel=2)
        class Wrong(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = nn.Sequential(nn.Linear(4, 3), nn.Linear(5, 2))
            def forward(self, x):
                warn()
                return self.inner(x)
        threading.Thread(target=Wrong(), args=(torch.zeros(2, 4),), name="other").start()
        try:
            Wrong()(torch.zeros(2, 4))
        except RuntimeError as error:
            raise ValueError("wrong") from error
    """
    write(tmp_path, body)
    plain, traced = by_both(*arguments, cwd=tmp_path)
    assert plain.code == traced.code == 1
    # Two threads may write in either order.
    assert sorted(without_progress(traced.stderr).splitlines()) == sorted(plain.stderr.splitlines())
    assert "✗ RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 5x2)" in (
        traced.stdout
    )


def test_an_error_in_a_function_of_torchs_outside_of_modules(tmp_path: Path) -> None:
    body = """
        import torch.nn.functional as F
        def loss():
            return F.cross_entropy(torch.zeros(4, 3), torch.tensor([0, 1, 2, 3]))
        thread = threading.Thread(target=loss, name="other")
        thread.start()
        thread.join()
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(1) as pool:
            print(type(pool.submit(loss).exception()))
        try:
            F.pad(torch.zeros(2), (1,))
        except RuntimeError:
            loss()
    """
    write(tmp_path, body)
    plain, traced = by_both("script.py", cwd=tmp_path)
    assert plain.code == traced.code == 1
    said = without_progress(traced.stderr).splitlines()
    assert [line for line in said if not line.startswith("shapetrace: ")] == (
        plain.stderr.splitlines()
    )


def test_a_file_that_is_no_trace_is_not_written_over(tmp_path: Path) -> None:
    path = write(tmp_path, "step(0)")
    text = path.read_text()
    outcome = run(tmp_path, "-o", "script.py", "script.py")
    assert (outcome.code, outcome.stdout) == (2, "")
    assert outcome.stderr == (
        "shapetrace: script.py exists already and is not a trace: remove it, or name another file\n"
    )
    assert path.read_text() == text
    (tmp_path / "run.json").touch()
    for _ in range(2):
        assert run(tmp_path, "--view", "none", "-o", "run.json", "script.py").code == 0
        assert codec.load(tmp_path / "run.json").modules


def test_leaving_at_once(tmp_path: Path) -> None:
    write(tmp_path, "step(0)\nos._exit(9)\n", "leaves.py")
    outcome = run(tmp_path, "--view", "table", "leaves.py")
    assert outcome.code == 9
    assert outcome.stdout.startswith("step 0\nleaves.py · torch ")

    write(tmp_path, "step(0)\nos.execlp('echo', 'echo', 'now', 'another')\n", "executes.py")
    outcome = run(tmp_path, "--view", "table", "executes.py")
    assert outcome.code == 0
    assert outcome.stdout.startswith("step 0\nexecutes.py · torch ")
    assert outcome.stdout.endswith("\nnow another\n")


def test_children_give_nothing_out(tmp_path: Path) -> None:
    body = """
        step(0)
        child = os.fork()
        if child == 0:
            step(1)
            sys.exit(5)
        print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        from torch.utils.data import DataLoader
        loader = DataLoader(range(4), 2, num_workers=1, multiprocessing_context="fork")
        print([batch.shape[0] for batch in loader])
    """
    write(tmp_path, body)
    outcome = run(tmp_path, "--passes", "all", "--view", "table", "-o", "run.json", "script.py")
    assert outcome.code == 0
    assert outcome.stdout.startswith("step 0\nstep 1\nchild 5\n[2, 2]\nscript.py · torch ")
    assert outcome.stdout.count("script.py · torch ") == 1
    assert outcome.stderr.count("wrote run.json") == 1
    assert "started anew" not in outcome.stderr
    assert codec.load(tmp_path / "run.json").run.passes == 1


SPAWNED = """
    import sys
    import torch
    from torch.utils.data import DataLoader

    def work(rank, factor):
        print((torch.nn.Linear(4, 2)(torch.ones(3, 4)) * factor).shape, sys.argv, flush=True)

    if __name__ == "__main__":
        torch.multiprocessing.spawn(work, (2.0,), nprocs=1)
        loader = DataLoader(range(4), 2, num_workers=1, multiprocessing_context="spawn")
        print([batch.tolist() for batch in loader])
        sys.exit(3)
"""


def test_processes_that_were_started_anew_are_told_of_once(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(textwrap.dedent(SPAWNED))
    plain = python("script.py", cwd=tmp_path)
    assert (plain.code, plain.stderr) == (3, "")
    assert plain.stdout.count("torch.Size([3, 2]) ['script.py']") == 1
    for command, missed, way in [
        (("run", "--view", "none"), "traced", "trace"),
        (("capture", "--values", "forward.x"), "captured", "ModelTracer"),
    ]:
        outcome = shapetrace(*command, "script.py", cwd=tmp_path)
        assert (outcome.code, outcome.stdout) == (3, plain.stdout)
        told = (
            f"shapetrace: 2 processes that the program spawned were not {missed}; "
            f"use shapetrace.{way} in their code, "
            f"or start ranks with torchrun -m shapetrace {command[0]}"
        )
        assert [line for line in outcome.stderr.splitlines() if "spawned" in line] == [told]


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """A traced program that has begun its endless work."""
    process = subprocess.Popen(
        [sys.executable, "-m", "shapetrace", "run", *arguments],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    while process.stdout.readline() != "step 1\n":
        assert process.poll() is None
    return process


FOR_EVER = """
    for number in range(1_000_000):
        step(number)
        if number:
            time.sleep(60)
"""


def test_ctrl_c(tmp_path: Path) -> None:
    write(tmp_path, FOR_EVER)
    process = start(tmp_path, "--passes", "all", "--view", "table", "-o", "run.json", "script.py")
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert stdout.startswith("script.py · torch ")
    assert without_progress(stderr).startswith("Traceback (most recent call last):\n  File ")
    assert without_progress(stderr).splitlines()[-2:] == [
        "KeyboardInterrupt",
        f"shapetrace: wrote run.json: 2 forward passes, {total_ops(tmp_path / 'run.json')} ops",
    ]
    assert "shapetrace/" not in stderr


def total_ops(path: Path) -> int:
    return sum(op.count for op in codec.load(path).ops)


def test_termination_leaves_the_file_of_a_finished_recording(tmp_path: Path) -> None:
    write(tmp_path, FOR_EVER)
    process = start(tmp_path, "-o", "run.json", "script.py")
    process.terminate()
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGTERM
    assert "1 forward pass" in stdout, stderr
    assert codec.load(tmp_path / "run.json").run.passes == 1


def test_a_reader_that_has_seen_enough(tmp_path: Path) -> None:
    body = """
        step(0)
        for size in range(3000):
            torch.zeros(size)
        step(1)
    """
    write(tmp_path, body)
    process = start(tmp_path, "--view", "json", "script.py")
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == '{"format":"shapetrace/1",\n'
    process.stdout.close()
    assert without_progress(process.stderr.read()) == ""
    process.stderr.close()
    assert process.wait(timeout=60) == 0


def on_a_terminal(folder: Path, *arguments: str, extra: dict[str, str] | None = None) -> str:
    """All that a terminal is sent."""
    import pty

    ours, its = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "shapetrace", "run", *arguments],
        cwd=folder,
        env=environment(extra),
        stdin=its,
        stdout=its,
        stderr=its,
    )
    os.close(its)
    sent = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:
            # Nobody has the other side open any more.
            break
        if not part:
            break
        sent += part
    os.close(ours)
    assert process.wait(timeout=60) == 0
    return sent.decode()


def test_on_a_terminal(tmp_path: Path) -> None:
    body = """
        started = time.monotonic()
        while time.monotonic() < started + 4:
            net(torch.zeros(3, 4))
        print("end")
    """
    write(tmp_path, body)
    sent = on_a_terminal(tmp_path, "--passes", "all", "script.py", extra={"TERM": "xterm"})
    progress = r"\rshapetrace: recording: [\d,]+ forward passes, [\d,]+ ops, \d s"
    shown = re.search(progress, sent)
    assert shown is not None
    before_trace, _, trace = sent.partition("end\r\n")
    assert shown.group() in before_trace
    # It may be told once more before the trace takes its place.
    assert re.match(rf"({progress}[^\r]*)*\r +\r\x1b\[", trace)

    write(tmp_path, "step(0)\n", "short.py")
    plain = on_a_terminal(tmp_path, "short.py", extra={"TERM": "xterm", "NO_COLOR": "1"})
    assert "\x1b[" not in plain


def test_colour_and_modules_of_the_program_with_our_names(tmp_path: Path) -> None:
    (tmp_path / "rich.py").write_text("raise ValueError('not the library')")
    (tmp_path / "shapetrace.py").write_text("raise ValueError('not the library')")
    script = write(tmp_path, "step(0)\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    outcome = run(elsewhere, "--color", "always", str(script))
    assert (outcome.code, outcome.stderr) == (0, "")
    assert "\x1b[" in outcome.stdout


def test_torch_without_a_forward_pass(tmp_path: Path) -> None:
    (tmp_path / "ops.py").write_text("import torch\nx = torch.zeros(3) + 1\n")
    (tmp_path / "nothing.py").write_text("import torch\n")
    outcome = run(tmp_path, "ops.py")
    assert (outcome.code, outcome.stderr) == (
        0,
        "shapetrace: no forward pass ran; recorded 2 ops\n",
    )
    assert "zeros(3)" in outcome.stdout
    assert run(tmp_path, "nothing.py") == Outcome(
        0, "", "shapetrace: nothing to trace: no tensor operation ran\n"
    )


def test_a_torch_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("print('torch of my own')")
    (tmp_path / "script.py").write_text("import torch\nprint('it ran')\nraise SystemExit(3)\n")
    outcome = run(tmp_path, "script.py")
    assert (outcome.code, outcome.stdout) == (3, "torch of my own\nit ran\n")
    assert outcome.stderr.startswith("shapetrace: the recorder could not start: ")
    assert outcome.stderr.count("\n") == 1


def test_no_torch(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import sys\nsys.modules['torch'] = None\nimport torch\n")
    plain, traced = by_both("script.py", cwd=tmp_path)
    assert plain.code == traced.code == 1
    assert plain.stderr.endswith("None in sys.modules\n")
    assert without_progress(traced.stderr) == (
        f"{plain.stderr}shapetrace: nothing to trace: the program did not import torch\n"
    )


@pytest.mark.parametrize(
    ("arguments", "code", "lines"),
    [
        (["train_gpt.py", "--epochs", "1", "--steps", "2"], 0, ["blocks.1.attention"]),
        (["encoder_decoder.py"], 0, ["decoder.cell", "f32[4,10,23]"]),
        (["shape_error.py"], 1, ["✗ RuntimeError: mat1 and mat2", "f32[4,2048]"]),
    ],
)
def test_examples(arguments: list[str], code: int, lines: list[str]) -> None:
    outcome = run(ROOT / "examples", *arguments)
    assert outcome.code == code
    for line in lines:
        assert line in outcome.stdout
