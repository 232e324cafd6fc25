"""What went wrong with Tensor Tracker does not here: each of its known faults is a test."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.python.unit.variables.programs import Program, text

Load = Callable[..., Program]
BACKEND = Path(__file__).parents[4] / "python_backend"


def test_importing_makes_no_folder_and_prints_nothing(tmp_path: Path) -> None:
    program = """
        from shapetrace import auto_diff, var_tracker, log2file, h4logger, logger, _log_change
        logger.addHandler(h4logger())
    """
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(program)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(BACKEND), "HOME": str(tmp_path / "nowhere")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore:.*(nested tensors|quantized tensor)")
@pytest.mark.parametrize(
    "value",
    [
        "torch.tensor([1, 2])",
        "torch.tensor([True, False])",
        "torch.empty(0)",
        "torch.empty(0, dtype=torch.int64)",
        "torch.ones(2, dtype=torch.bfloat16)",
        "torch.ones(2).to(torch.float8_e4m3fn)",
        "torch.ones(2, dtype=torch.complex64)",
        "torch.eye(3).to_sparse()",
        "torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])",
        "torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)",
        "torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8)",
        "torch.ones(2, device='meta')",
        "torch.ones(1 << 16, 1, device='meta').expand(1 << 16, 1 << 20)",
        "torch.ones(1).expand(1 << 40)",
        "np.ones(3)",
        "np.array(['a', None], dtype=object)",
        "np.zeros(2, dtype=[('a', 'i4'), ('b', 'f8', (2,))])",
        "np.array('2020-01-01', dtype='datetime64[D]')",
        "np.ma.masked_array([1, 2], mask=[0, 1])",
        "np.float32(1.5)",
        "(i for i in range(3))",
        "{'a': torch.ones(2, requires_grad=True) * 2, 'b': [torch.ones(2)]}",
        "torch.nn.Linear(2, 2)",
        "None",
        "object()",
        "type",
        "float('nan')",
        "{1, 2, 'a'}",
        "slice(1, None)",
        "10 ** 1000",
    ],
)
def test_values_of_every_kind_are_safe(program: Load, value: str) -> None:
    it = program(f"""
        def make():
            return {value}

        @var_tracker("x", "y", stats=True, tolerance=0.5, handler=told)
        def f(x):
            x = x
            y = [x, {{"a": x}}]
            len(y)
            z = x
            x = make()
            y = [x, {{"a": x}}]
            return y, x, z
    """)
    torch = it.module.torch
    torch.manual_seed(0)
    it.module.make(), it.module.make()
    state = torch.get_rng_state()
    torch.manual_seed(0)
    value = it.module.make()
    y, x, z = it.module.f(value)
    assert z is value
    assert y[0] is x
    assert torch.equal(torch.get_rng_state(), state)
    assert len(it.began) == len(it.ended) == 1
    assert it.ended[0].outcome == "returned"
    assert len([each for each in it.changes if each.name == "y"]) in (1, 2)
    from shapetrace.instrument.following import _FOLLOWED

    assert it.module.f in _FOLLOWED  # nothing of ours has failed, which would end it


def test_an_array_that_is_seen_twice_is_compared(program: Load) -> None:
    it = program("""
        @var_tracker("x", handler=told)
        def f(x):
            y = x.sum()
            x = x.copy()  # equal
            y = x.mean()
            x[0] = 5  # written
            y = x.max()
            return x
    """)
    it.module.f(it.module.np.ones(3))
    assert it.history() == ["written x f64[3] -> f64[3] values"]


def test_the_line_is_the_one_that_assigned_and_the_last_line_counts(program: Load) -> None:
    it = program("""
        @var_tracker("scores", "late", handler=told)
        def f(x):
            scores = x * 2  # here

            if x is not None:
                late = scores  # last

        f(torch.ones(2))
    """)
    assert [(each.name, each.line) for each in it.changes] == [
        ("scores", it.line("here")),
        ("late", it.line("last")),
    ]


def test_a_nan_is_as_it_was_and_a_small_change_is_one(program: Load) -> None:
    it = program("""
        @var_tracker("x", "n", "a", handler=told)
        def f(x, n, a):
            y = x.sum()
            y = a.sum()
            n = float("nan")
            x = x + 1e-6  # small
            return y

        @var_tracker("x", tolerance=1e-5, handler=told)
        def named(x):
            x = x + 1e-6  # within
            x.add_(1)  # beyond
            return x
    """)
    torch, np = it.module.torch, it.module.np
    nan = float("nan")
    it.module.f(torch.tensor([nan, 0.0]), nan, np.array([nan]))
    assert it.history() == ["small x f32[2] -> f32[2] values"]
    it.events.clear()
    it.module.named(torch.tensor([nan, 0.0]))
    assert it.history() == [
        "within x f32[2] -> f32[2] tolerance",
        "beyond x f32[2] -> f32[2] values",
    ]


def test_outer_following_goes_on_after_inner_calls(program: Load) -> None:
    it = program("""
        @var_tracker("x", handler=told)
        def inner(x):
            x = x + 1
            return x

        @var_tracker("o", "y", handler=told)
        def forward(x):
            o = inner(x)  # o
            y = inner(o)  # y
            return y
    """)
    it.module.forward(1)
    assert it.history("o") + it.history("y") == ["o o nothing -> 2 new", "y y nothing -> 3 new"]


def test_no_trace_function_is_set_or_lost(program: Load) -> None:
    it = program("""
        @var_tracker("x", handler=told)
        def f(x):
            seen.append(sys.gettrace())
            x = x + 1
            raise ValueError("mine")
        import sys
        seen = []
    """)

    def tracer(frame: object, event: str, argument: object) -> None:
        return None

    before = sys.gettrace()
    try:
        sys.settrace(tracer)
        with pytest.raises(ValueError, match="mine"):
            it.module.f(1)
        after = sys.gettrace()
    finally:
        sys.settrace(before)
    assert it.module.seen == [tracer]
    assert after is tracer
    with pytest.raises(ValueError, match="mine"):
        it.module.f(1)
    assert sys.gettrace() is before


def test_qualified_names_and_lines_are_the_functions_own(program: Load) -> None:
    it = program("""
        class A:
            class B:
                @var_tracker("x", handler=told)
                @torch.no_grad()
                def m(
                    self,
                ):
                    pass

        def outer():
            @auto_diff(handler=told)
            def f(): pass
            return f

        A.B().m()
        outer()()
    """)
    assert [each.function for each in it.began] == ["A.B.m", "outer.<locals>.f"]
    assert it.began[0].line == it.path.read_text().splitlines().index("        def m(") + 1
    assert it.began[0].file == str(it.path)


def test_every_argument_and_result_is_told(program: Load) -> None:
    it = program("""
        @auto_diff(handler=told)
        def f(value):
            return value
    """)
    torch, np = it.module.torch, it.module.np
    values = {
        "(f32[2], 3)": (torch.ones(2), 3),
        "None": None,
        "Linear": torch.nn.Linear(2, 2),
        "{a: f32[2]}": {"a": torch.ones(2)},
        "f64[3]": np.ones(3),
        "1.5 f32": np.float32(1.5),
        "5": 5,
        "[f32[2] ×12]": [torch.ones(2)] * 12,
        "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, …]": list(range(5000)),
    }
    for expected, value in values.items():
        it.module.f(value)
        assert text(it.began[-1].arguments[0].value) == expected
        assert text(it.ended[-1].value) == expected


def test_the_accuracy_monitor_shows_inputs_too(capsys: pytest.CaptureFixture[str]) -> None:
    import torch

    def check_hook(module, input, output):
        from shapetrace import _log_change

        _log_change(f"{module.__class__.__name__}", "input", input, "", 0)
        _log_change(f"{module.__class__.__name__}", "output", output, "", 0)

    linear = torch.nn.Linear(2, 2)
    model = torch.nn.Sequential(linear, torch.nn.ReLU())
    with torch.no_grad():
        linear.weight.fill_(1)
        linear.bias.fill_(-3)
    for _, layer in model.named_modules():
        layer.register_forward_hook(check_hook)
    model(torch.ones(1, 2))
    assert capsys.readouterr().out.splitlines() == [
        "├─ Linear  input[0]  f32[1,2]  min 1 · max 1 · mean 1",
        "├─ Linear  output  f32[1,2]  min -1 · max -1 · mean -1",
        "├─ ReLU  input[0]  f32[1,2]  min -1 · max -1 · mean -1",
        "├─ ReLU  output  f32[1,2]  min 0 · max 0 · mean 0",
        "├─ Sequential  input[0]  f32[1,2]  min 1 · max 1 · mean 1",
        "├─ Sequential  output  f32[1,2]  min 0 · max 0 · mean 0",
    ]
