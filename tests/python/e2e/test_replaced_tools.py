"""Programs that use the names of other tools, from their first line to after their last."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.python.e2e.cli.programs import Outcome, python, shapetrace

pytestmark = pytest.mark.e2e

MODEL = """
    import os, sys
    import torch
    from shapetrace import Tracer, TracingMode

    model = torch.nn.Linear(3, 4)
    x = torch.rand(2, 3)
    tracer = Tracer("model")
"""

NOT_STOPPED = "The program ended before stop() was called; this was recorded until then."


def run(folder: Path, program: str, **extra: str) -> Outcome:
    path = folder / "program.py"
    path.write_text(textwrap.dedent(MODEL) + textwrap.dedent(program), "utf-8")
    environment = {"COLUMNS": "100", "PYTHONUTF8": "1", **extra}
    return python(path.name, cwd=folder, extra=environment)


def test_a_tracer_that_is_never_stopped_prints_when_the_program_ends(tmp_path: Path) -> None:
    outcome = run(tmp_path, "tracer.start(model)\nmodel(x)\nprint('last line')\n")
    assert outcome.code == 0
    assert outcome.stderr == ""
    lines = outcome.stdout.splitlines()
    assert lines[:2] == ["last line", "● TRACING model STARTED"]
    assert lines[-3:] == [NOT_STOPPED, "", "● TRACING model COMPLETE"]
    assert any(
        line.startswith("Linear(in_features=3, out_features=4, bias=True)") for line in lines
    )


def test_a_program_that_fails_shows_its_error_and_then_what_was_seen(tmp_path: Path) -> None:
    program = "tracer.start(model)\nmodel(torch.rand(2, 5))\n"
    outcome = run(tmp_path, program)
    plain = run(tmp_path, program.replace("tracer.start(model)", "pass"))
    assert outcome.code == 1
    assert outcome.stderr == plain.stderr
    assert "✗ RuntimeError: mat1 and mat2 shapes cannot be multiplied" in outcome.stdout
    assert NOT_STOPPED in outcome.stdout


def test_a_program_that_exits_within_the_block_prints_once(tmp_path: Path) -> None:
    outcome = run(tmp_path, "with tracer.trace(model):\n    model(x)\n    sys.exit(3)\n")
    assert outcome.code == 3
    assert outcome.stdout.count("● TRACING model COMPLETE") == 1
    assert NOT_STOPPED not in outcome.stdout


def test_a_stopped_tracer_prints_nothing_more_at_the_end(tmp_path: Path) -> None:
    outcome = run(tmp_path, "tracer.start(model)\nmodel(x)\ntracer.stop()\nprint('end')\n")
    assert outcome.stdout.splitlines()[-2:] == ["● TRACING model COMPLETE", "end"]


@pytest.mark.parametrize("child_end", ["tracer.stop()", "pass"])
def test_only_the_process_that_was_started_prints(tmp_path: Path, child_end: str) -> None:
    program = f"""
        tracer.start(model)
        model(x)
        child = os.fork()
        if child == 0:
            {child_end}
            sys.exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        tracer.stop()
    """
    outcome = run(tmp_path, program)
    assert outcome.code == 0
    assert outcome.stdout.startswith("7\n")
    assert outcome.stdout.count("● TRACING model STARTED") == 1


def test_under_shapetrace_run_the_tracer_says_that_it_records_nothing(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(
        textwrap.dedent(MODEL) + "with tracer.trace(model):\n    model(x)\nprint('end')\n", "utf-8"
    )
    environment = {"COLUMNS": "100", "PYTHONUTF8": "1"}
    outcome = shapetrace("run", path.name, cwd=tmp_path, extra=environment)
    assert outcome.code == 0
    first, second, *rest = outcome.stdout.splitlines()
    assert first.startswith("Tracer model records nothing: another recording is running")
    assert second == "end"
    assert any(line.startswith("Linear(in_features=3, out_features=4, bias=True)") for line in rest)


def test_a_terminal_without_our_signs_still_gets_the_tree(tmp_path: Path) -> None:
    outcome = run(
        tmp_path,
        "with tracer.trace(model):\n    model(x)\n",
        PYTHONUTF8="0",
        PYTHONIOENCODING="ascii:strict",
    )
    assert outcome.code == 0
    assert outcome.stderr == ""
    assert outcome.stdout.startswith("* TRACING model STARTED\n")
    assert "`- linear()" in outcome.stdout


def test_higher_order_operators_run_as_they_would_without_the_mode(tmp_path: Path) -> None:
    program = """
        def chosen():
            return torch.cond(x.sum() > 0, lambda t: t + 1, lambda t: t - 1, (x,))

        with TracingMode(quiet=True):
            print(torch.equal(chosen(), x + 1))
    """
    outcome = run(tmp_path, program)
    assert outcome.stdout == "True\n", outcome.stderr


def test_a_listing_has_each_line_with_all_that_it_ran(tmp_path: Path) -> None:
    program = """
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = torch.nn.Linear(3, 3)

            def forward(self, größe):
                for _ in range(3):
                    größe = self.linear(größe)
                return torch.cat(
                    [größe, größe],
                    dim=1,
                )

        net = Net()
        with TracingMode(), torch.no_grad():
            net(x)
    """
    outcome = run(tmp_path, program)
    assert outcome.stderr == ""
    header, blank, *lines = [line.rstrip() for line in outcome.stdout.splitlines()]
    assert header.endswith("1 forward pass · 4 module calls · 4 ops · 7 kernels")
    assert blank == ""
    assert [_without_place(line) for line in lines] == [
        "net(x)",
        "│ ⬇️ Net  (f32[2,3]) -> f32[2,6]",
        "│ größe = self.linear(größe)",
        "│ │ ⬇️ linear (Linear)  ×3  (f32[2,3]) -> f32[2,3]",
        "│ │ │ # linear(f32[2,3], f32[3,3], f32[3]) -> f32[2,3]  ×3",
        "│ │ │ │ # aten.t(f32[3,3]) -> f32[3,3]  ×3",
        "│ │ │ │ # aten.addmm(f32[3], f32[2,3], f32[3,3]) -> f32[2,3]  ×3",
        "│ return torch.cat(",
        "│     [größe, größe],",
        "│     dim=1,",
        "│ )",
        "│ │ # cat([f32[2,3], f32[2,3]], dim=1) -> f32[2,6]",
        "│ │ │ # aten.cat([f32[2,3], f32[2,3]], 1) -> f32[2,6]",
    ]


def _without_place(line: str) -> str:
    """A line of a listing without the place at its right end."""
    return line.partition("  # program.py")[0].rstrip()
