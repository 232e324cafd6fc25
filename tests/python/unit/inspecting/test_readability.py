"""Why a tensor is not read, and what becomes of it where that is no reason for who asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from shapetrace.inspecting.readability import Reason, Unreadable, unreadable_of
from tests.python.unit.odd_tensors.tensors import Wrapper, freed


def fake() -> Any:
    from torch._subclasses.fake_tensor import FakeTensorMode

    return FakeTensorMode().from_tensor(torch.ones(2))


TENSORS: dict[Reason, tuple[Callable[[], Any], str]] = {
    Reason.TRACED: (fake, "no data while a program is traced"),
    Reason.OWN_DATA: (lambda: Wrapper(torch.ones(2)), "Wrapper keeps its data in its own way"),
    Reason.NOT_MADE: (torch.nn.UninitializedParameter, "no data before the first call"),
    Reason.META: (lambda: torch.ones(2, device="meta"), "no data on meta"),
    Reason.NESTED: (lambda: torch.nested.nested_tensor([torch.ones(2)]), "nested"),
    Reason.LAYOUT: (lambda: torch.eye(2).to_sparse(), "sparse_coo"),
    Reason.QUANTIZED: (
        lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
        "quantized",
    ),
    Reason.GIVEN_BACK: (lambda: freed(torch.ones(2)), "its memory was given back"),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("reason", TENSORS, ids=lambda reason: reason.name)
def test_the_reason(reason: Reason) -> None:
    make, text = TENSORS[reason]
    tensor = make()
    with torch._C.DisableTorchFunction():
        found = unreadable_of(torch)(tensor)
        assert found is not None
        assert (found.reason, found.text) == (reason, text)
        accepted = {reason, *(each for each in Reason if each is not Reason.TRANSFORM)}
        assert unreadable_of(torch, *accepted)(tensor) is None


@pytest.mark.parametrize(
    "tensor", [torch.ones(2), torch.ones(2, 0), torch.nn.Parameter(torch.ones(1))]
)
def test_an_ordinary_tensor_may_be_read(tensor: Any) -> None:
    assert unreadable_of(torch)(tensor) is None


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_within_a_transform_and_while_torch_jit_traces() -> None:
    found: list[Unreadable | None] = []

    def function(x: Any) -> Any:
        found.append(unreadable_of(torch)(x))
        return x + 1

    torch.vmap(function)(torch.ones(2, 2))
    torch.jit.trace(function, torch.ones(2), check_trace=False)
    assert [each and each.reason for each in found] == [Reason.TRANSFORM, Reason.JIT_TRACE]


def test_no_two_reasons_are_one() -> None:
    assert len(Reason.__members__) == len(set(Reason)) == 13
