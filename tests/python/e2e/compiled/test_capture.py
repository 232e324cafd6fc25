"""``capture``: Dynamo compiles what it would compile without us."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.python.e2e.cli.programs import shapetrace
from tests.python.e2e.compiled.conftest import Alike
from tests.python.e2e.compiled.table import PROGRAMS

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]

PATHS = ("forward", "forward.x", "forward.h", "**.forward.h", "part", "helped", "helped.weights")


def test_dynamo_sees_nothing_of_capturing(alike: Alike) -> None:
    options = [option for path in PATHS for option in ("--values", path)]
    outcome = alike("-m", "shapetrace", "capture", *options, str(PROGRAMS))
    assert "part.forward.h" in outcome.stdout
    assert "stepped around what torch.compile has compiled" in outcome.stderr


def test_a_model_that_is_called_only_where_it_is_compiled(tmp_path: Path) -> None:
    program = """
        import torch
        model = torch.nn.Linear(4, 4)
        step = torch.compile(lambda x: model(x) * 2, backend="eager")
        print(tuple(step(torch.ones(2, 4)).shape))
    """
    (tmp_path / "script.py").write_text(textwrap.dedent(program))
    outcome = shapetrace("capture", "--values", "forward", "script.py", cwd=tmp_path)
    assert outcome.stdout == "(2, 4)\n"
    assert outcome.stderr == (
        "shapetrace: nothing was captured: no module with parameters was called outside of code "
        "compiled by torch.compile; set TORCH_COMPILE_DISABLE=1 to switch compiling off\n"
    )
