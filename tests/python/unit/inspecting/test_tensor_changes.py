"""What counts as a change of a tensor is the same for captures and watches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from shapetrace.capture.value_changes import seen
from shapetrace.variables.memories import remember


class Own(torch.Tensor):
    pass


def in_inference_mode() -> torch.Tensor:
    with torch.inference_mode():
        return torch.ones(3)


def change_in_place(tensor: Any) -> None:
    with torch.inference_mode():
        tensor.add_(1)


def set_data(tensor: Any) -> None:
    tensor.data = torch.ones(3)


KINDS: dict[str, Callable[[], Any]] = {
    "parameter": lambda: torch.nn.Parameter(torch.ones(3)),
    "subclass": lambda: torch.ones(3).as_subclass(Own),
    "inference": in_inference_mode,
}


@pytest.mark.parametrize("look", [seen, remember])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", [change_in_place, set_data])
def test_changes(look: Callable[[Any], Any], kind: str, change: Callable[[Any], None]) -> None:
    value = KINDS[kind]()
    known = look(value)
    assert known.is_still(value)
    if kind == "inference" and change is set_data:
        with torch.inference_mode():
            change(value)
    else:
        change(value)
    assert not known.is_still(value)


@pytest.mark.parametrize("look", [seen, remember])
@pytest.mark.parametrize("kind", KINDS)
def test_another_tensor_of_equal_content_is_a_change(look: Callable[[Any], Any], kind: str) -> None:
    value, other = KINDS[kind](), KINDS[kind]()
    assert not look(value).is_still(other)
