"""The text of every kind of value, for which nothing is read, called or noticed."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path
from types import MappingProxyType

import pytest
import torch
from torch import nn

from shapetrace.panes import presentation
from shapetrace.views.shapes import dtype_text
from tests.python.unit.panes.values import HOLDERS, MODULES, NOT_OURS, TENSORS, made
from tests.python.unit.panes.watching import unnoticed
from tests.support.process_groups import process_group
from tests.support.torches import distributed_tensors

BACKEND = Path(__file__).parents[4] / "python_backend"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize(("expression", "text"), (TENSORS | MODULES | HOLDERS).items())
def test_a_value_is_shown_and_nothing_notices(expression: str, text: str) -> None:
    value = made(expression)
    with unnoticed(value):
        found = presentation(value)
    assert without_symbols(found) == text


def without_symbols(text: str | None) -> str | None:
    """The names of symbolic sizes have a number that depends on what was traced before."""
    return None if text is None else re.sub(r"\b([sj])\d+\b", r"\1", text)


@pytest.mark.parametrize("expression", NOT_OURS)
def test_what_is_not_ours_is_left_alone(expression: str) -> None:
    assert presentation(made(expression)) is None


DTYPES = [value for value in vars(torch).values() if isinstance(value, torch.dtype)]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("dtype", sorted(set(DTYPES), key=str), ids=str)
def test_every_dtype_has_a_short_name(dtype: torch.dtype) -> None:
    try:
        value = torch.empty(2, 3, dtype=dtype)
    except (RuntimeError, NotImplementedError):
        value = torch.empty(2, 3, dtype=dtype, device="meta")
    with unnoticed(value):
        text = presentation(value)
    assert str(text).partition("@")[0] == f"{dtype_text(str(dtype))}[2,3]"


def test_tensors_within_a_function_transform() -> None:
    seen: list[str | None] = []

    def look(x: torch.Tensor) -> torch.Tensor:
        seen.append(presentation(x))
        return x

    torch.vmap(look)(torch.ones(3, 4))
    torch.func.grad(lambda x: look(x).sum())(torch.ones(3))
    assert seen == ["f32[4]", "f32[3] · requires grad"]


def test_symbolic_sizes_are_not_forced() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    environment = ShapeEnv()
    mode = FakeTensorMode(shape_env=environment)
    tensor = mode.from_tensor(torch.ones(5, 4))
    names = ",".join(map(str, tensor.shape))
    assert not names.isdecimal()
    assert presentation(tensor) == f"f32[{names}] · FakeTensor"
    assert environment.guards == []


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
def test_a_distributed_tensor_says_what_is_here() -> None:
    from torch.distributed.device_mesh import init_device_mesh

    dtensors = distributed_tensors()
    with process_group(2):
        mesh = init_device_mesh("cpu", (2,))
        spread = dtensors.distribute_tensor(torch.ones(4, 2), mesh, [dtensors.Shard(0)])
        with unnoticed():
            text = presentation(spread)
    assert text == "f32[4,2] · DTensor · S(0) · local f32[2,2]"


class _Custom:
    """A mapping that runs code for whatever it is asked."""

    def __init__(self) -> None:
        self.tensor = torch.ones(2)

    def _run(self, *_: object) -> None:
        raise AssertionError("the program's own code")

    __getitem__ = __len__ = __iter__ = keys = items = values = _run


class _Ordered(OrderedDict[object, object]):
    __getitem__ = __len__ = __iter__ = _Custom._run  # type: ignore[assignment]


class _Key:
    def __hash__(self) -> int:
        assert not self.is_known, "the program's own code"
        return 3

    is_known = False


def test_what_shows_another_value_runs_no_code_of_that() -> None:
    views = {f"odict_{name}": {"__iter__": _Custom._run, "__len__": _Custom._run} for name in "ab"}
    key = _Key()
    ordered = _Ordered()
    dict.__setitem__(ordered, "a", 1)
    OrderedDict.__setitem__(ordered, key, torch.ones(2))
    key.is_known = True
    shown = [
        MappingProxyType(_Custom()),  # type: ignore[arg-type]
        MappingProxyType(OrderedDict.copy(OrderedDict(a=torch.ones(3)))),
        OrderedDict.values(ordered),
        type("odict_items", (), {**views["odict_a"], "x": torch.ones(2)})(),
        type("odict_keys", (), views["odict_b"])(),
    ]
    assert [presentation(each) for each in shown] == [
        "mappingproxy(_Custom(tensor: f32[2]))",
        "mappingproxy(a: f32[3])",
        "odict_values(1, f32[2])",
        None,
        None,
    ]


def test_what_claims_to_be_a_tensor_is_not_taken_for_one() -> None:
    class Proxy:
        __class__ = torch.Tensor  # type: ignore[assignment]

    assert presentation(Proxy()) is None


@pytest.mark.slow
def test_a_model_with_many_modules_is_counted_up_to_a_point() -> None:
    model = nn.ModuleList([nn.ReLU() for _ in range(20_001)])
    model.append(nn.Linear(2, 3))
    assert str(presentation(model)).startswith("ModuleList(ReLU ×64, …) ≥ ")


@pytest.mark.slow
def test_without_torch_nothing_is_ours_and_nothing_is_imported() -> None:
    program = (
        "import sys; from shapetrace.panes import children, opens, presentation\n"
        "values = [[1], {'a': 2}, object(), print, 'x']\n"
        "print([presentation(value) for value in values], [children(value) for value in values])\n"
        "print(opens(list), 'torch' in sys.modules, 'numpy' in sys.modules)\n"
        "import torch\n"
        "print(presentation([torch.ones(2)]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(BACKEND), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.splitlines() == [
        "[None, None, None, None, None] [[], [], [], [], []]",
        "False False False",
        "[f32[2]]",
    ]
    assert done.stderr == ""
