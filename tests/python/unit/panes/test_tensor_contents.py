"""Statistics and first values: right, within bounds, and of every dtype."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from shapetrace.inspecting.torch_access import loaded_torch
from shapetrace.panes import tensor_contents
from tests.python.unit.panes.watching import unnoticed

TORCH: Any = loaded_torch()


def statistics(tensor: torch.Tensor) -> str:
    with unnoticed(tensor, is_opened=True):
        return tensor_contents.statistics_text(tensor, TORCH)


def values(tensor: torch.Tensor) -> str | None:
    with unnoticed(tensor, is_opened=True):
        return tensor_contents.values_text(tensor, TORCH)


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        (torch.tensor([1.0, 2.0, 6.0]), "min 1 · max 6 · mean 3 · no nan"),
        (torch.tensor([1.0, NAN, 3.0, NAN]), "min 1 · max 3 · mean 2 · 2 nan"),
        (torch.tensor([1.0, INF, -INF]), "min -inf · max inf · mean nan · no nan · 2 inf"),
        (torch.tensor([NAN, NAN]), "2 nan"),
        (torch.tensor([3, -5], dtype=torch.int8), "min -5 · max 3 · mean -1"),
        (torch.tensor([2**62, 2**62]), "min 4611686018427387904 · max 4611686018427387904"),
        (torch.tensor([True, False, True]), "2 of 3 true"),
        (torch.tensor(0.5), "min 0.5 · max 0.5 · mean 0.5 · no nan"),
        (torch.empty(0, 3), "empty"),
        (torch.ones(2, dtype=torch.complex64), "complex numbers have no order"),
        (torch.ones(3).expand(5, 3), "min 1 · max 1 · mean 1 · no nan"),
        (torch.ones(2, requires_grad=True) * 2, "min 2 · max 2 · mean 2 · no nan"),
    ],
)
def test_statistics(tensor: torch.Tensor, expected: str) -> None:
    found = statistics(tensor)
    assert found.startswith(expected)
    assert "seen" not in found


@pytest.mark.parametrize("shape", [(70_001,), (3, 5, 7, 11, 13, 17), (300, 301), (1, 99_999)])
@pytest.mark.parametrize("order", ["as made", "turned", "every other"])
def test_every_number_of_a_tensor_counts_once(shape: tuple[int, ...], order: str) -> None:
    tensor = torch.randn(shape, dtype=torch.float64)
    if order == "turned":
        tensor = tensor.permute(*reversed(range(tensor.dim())))
    elif order == "every other":
        tensor = tensor[..., ::2]
    found = statistics(tensor)
    low, high, mean = (
        tensor_contents.number_text(each.item()) for each in (*tensor.aminmax(), tensor.mean())
    )
    assert found == f"min {low} · max {high} · mean {mean} · no nan"


def test_a_large_tensor_is_read_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_contents, "MOST_BYTES", 1 << 20)
    tensor = torch.arange(1 << 22, dtype=torch.float32)
    found = statistics(tensor).split(" · ")
    seen = int(found[-1].removeprefix("seen ").partition(" of ")[0].replace(",", ""))
    assert found[-1].endswith(" of 4,194,304")
    assert (1 << 17) <= seen <= (1 << 18)
    mean = float(found[2].removeprefix("mean "))
    assert abs(mean / (1 << 21) - 1) < 0.1, "what was read is not spread over the tensor"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_tensor_is_read_while_torch_jit_traces() -> None:
    texts: list[str | None] = []

    def function(x: torch.Tensor) -> torch.Tensor:
        texts.extend(
            (tensor_contents.statistics_text(x, TORCH), tensor_contents.values_text(x, TORCH))
        )
        return x + 1

    traced: Any = torch.jit.trace(function, torch.tensor([1.0, 3.0]), check_trace=False)
    assert texts == ["min 1 · max 3 · mean 2 · no nan", "1, 3"]
    assert [each.kind() for each in traced.graph.nodes()][-1] == "aten::add"
    assert len(list(traced.graph.nodes())) == 3


def test_reading_ends_when_it_has_taken_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_contents, "MOST_SECONDS", -1.0)
    assert statistics(torch.ones(1 << 16)).endswith(" of 65,536")


def test_a_storage_that_was_freed_under_its_tensor_is_not_read() -> None:
    tensor = torch.ones(10)
    tensor.untyped_storage().resize_(0)
    assert statistics(tensor) == "not read: its memory was given back"
    assert values(tensor) is None


@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        (torch.tensor(0.7311), "0.7311"),
        (torch.tensor([1.23456, -2.0]), "1.235, -2"),
        (torch.arange(20), "0, 1, 2, 3, 4, 5, 6, 7, …"),
        (torch.arange(24).reshape(2, 3, 4), "0, 1, 2, 3, 4, 5, 6, 7, …"),
        (torch.arange(6).reshape(3, 2).t(), "0, 2, 4, 1, 3, 5"),
        (torch.tensor([True, False]), "True, False"),
        (torch.tensor([1 + 2j]), "1+2j"),
        (torch.empty(0), ""),
        (torch.tensor([0.5, 2.0], dtype=torch.bfloat16), "0.5, 2"),
        (torch.tensor([0.5, 2.0]).to(torch.float8_e4m3fn), "0.5, 2"),
        (torch.empty(2, device="meta"), None),
    ],
)
def test_first_values(tensor: torch.Tensor, expected: str | None) -> None:
    assert values(tensor) == expected


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "dtype",
    sorted({each for each in vars(torch).values() if isinstance(each, torch.dtype)}, key=str),
    ids=str,
)
def test_no_dtype_is_too_much(dtype: torch.dtype) -> None:
    try:
        tensor = torch.empty(4, dtype=dtype)
    except (RuntimeError, NotImplementedError):
        return
    found = statistics(tensor)
    assert found.startswith(("min ", "not read: ", "4 nan", "complex")) or found.endswith(" true")
    values(tensor)


def test_autocast_and_inference_mode_change_nothing() -> None:
    with torch.autocast("cpu"), torch.inference_mode():
        assert statistics(torch.tensor([1.0, 4.0])) == "min 1 · max 4 · mean 2.5 · no nan"
