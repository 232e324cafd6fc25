"""What counts as a change of a value, and what does not."""

from __future__ import annotations

import gc
import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field, make_dataclass
from typing import Any

import numpy as np
import pytest
import torch

from shapetrace.capture.value_changes import seen


@dataclass
class Fields:
    x: Any = None
    many: list[Any] = field(default_factory=list)


Pair = namedtuple("Pair", "first second")


def is_still(value: Any, change: Callable[[Any], Any]) -> bool:
    """Whether a value is as it was after something was done to it, which may return another."""
    known = seen(value)
    assert known.is_still(value)
    other = change(value)
    return known.is_still(value if other is None else other)


def put(container: Any, key: Any, value: Any) -> None:
    container[key] = value


@pytest.mark.parametrize(
    ("value", "change"),
    [
        (torch.ones(3), lambda x: x.add_(1)),
        (torch.ones(3), lambda x: x.view(3, 1).mul_(2)),
        (torch.ones(3), lambda x: x.clone()),
        (torch.ones(3), lambda x: x.detach()),
        (torch.nn.Parameter(torch.ones(3)), lambda x: x.data.__class__ and x.detach().add_(1)),
        (1, lambda _: 2),
        (1, lambda _: True),
        (1, lambda _: 1.0),
        (0.5, lambda _: float("nan")),
        ("a", lambda _: "b"),
        (None, lambda _: 0),
        ([1, 2], lambda x: x.append(3)),
        ([1, 2], lambda x: put(x, 0, 2)),
        ([1, 2], lambda _: (1, 2)),
        ({"a": 1}, lambda x: put(x, "a", 2)),
        ({"a": 1}, lambda x: put(x, "b", 2)),
        ({"a": 1, "b": 2}, lambda _: {"b": 2, "a": 1}),
        ({"a": [torch.ones(2)]}, lambda x: x["a"][0].add_(1)),
        ({1, 2}, lambda x: x.add(3)),
        (Pair(1, [torch.ones(2)]), lambda x: x.second[0].mul_(2)),
        (Fields(1), lambda x: setattr(x, "x", 2)),
        (Fields(1, [1]), lambda x: x.many.append(1)),
        (np.ones(3), lambda x: put(x, 0, 5)),
        (np.ones(3), lambda x: x.astype("f4")),
        (np.ones(3), lambda x: x.reshape(3, 1)),
        (np.array([object()]), lambda x: put(x, 0, object())),
        (torch.nn.Linear(2, 2), lambda _: torch.nn.Linear(2, 2)),
        (object(), lambda _: object()),
    ],
)
def test_changes(value: Any, change: Callable[[Any], Any]) -> None:
    assert not is_still(value, change)


@pytest.mark.parametrize(
    ("value", "change"),
    [
        (torch.ones(3), lambda x: None),
        (torch.full((3,), float("nan")), lambda x: None),
        (torch.ones(3, requires_grad=True) * 2, lambda x: x.retain_grad()),
        (1, lambda _: 1),
        (10**20, lambda _: 10**20),
        (float("nan"), lambda _: float("nan")),
        ("ab", lambda _: "".join(["a", "b"])),
        ([1, [2, {"a": None}]], lambda _: [1, [2, {"a": None}]]),
        (OrderedDict(a=1), lambda _: OrderedDict(a=1)),
        (Fields(1, [2]), lambda _: Fields(1, [2])),
        (np.array([1.0, np.nan]), lambda x: x.copy()),
        (np.array(["a"]), lambda x: x.copy()),
        (np.array(["2020-01-01", "NaT"], "M8[D]"), lambda x: x.copy()),
        (np.float32(1), lambda _: np.float32(1)),
        (torch.nn.Linear(2, 2), lambda x: x.reset_parameters()),
    ],
)
def test_what_is_no_change(value: Any, change: Callable[[Any], Any]) -> None:
    assert is_still(value, change)


def test_other_data_of_a_parameter_is_a_change() -> None:
    parameter = torch.nn.Parameter(torch.ones(3))
    known = seen(parameter)
    parameter.data = torch.zeros(3)
    assert not known.is_still(parameter)


def test_tensors_of_inference_mode_are_compared_by_what_is_in_them() -> None:
    with torch.inference_mode():
        x = torch.tensor([1.0, float("nan")])
        known = seen(x)
        assert known.is_still(x)
        x[0] = 2
        assert not known.is_still(x)


def test_the_number_of_a_tensor_that_is_gone_means_nothing() -> None:
    x = torch.ones(3)
    known = seen(x)
    number = id(x)
    del x
    others = [torch.ones(3) for _ in range(1000)]
    assert not any(known.is_still(other) for other in others if id(other) == number)


@pytest.mark.slow
def test_what_is_remembered_keeps_no_value_alive() -> None:
    x = torch.ones(3) * 2
    known = [seen(x), seen({"a": [x]}), seen((x, 1)), seen(Fields(x))]
    reference = weakref.ref(x)
    del x
    gc.collect()
    assert reference() is None
    assert len(known) == 4


class Own(torch.Tensor):
    pass


def test_a_tensor_of_another_class_is_known_for_the_call_only() -> None:
    x = torch.ones(3).as_subclass(Own)
    known = seen([x])
    assert known.is_still([x])
    assert known.lasting() is None


def test_parameters_can_be_swapped_after_they_were_seen() -> None:
    parameter, other = (torch.nn.Parameter(torch.ones(3)) for _ in range(2))
    known = seen(parameter)
    torch.utils.swap_tensors(parameter, other)
    assert not known.is_still(other)


class Thing:
    pass


class Kind(torch.Tensor):
    pass


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.ones(3),
        lambda: torch.nn.Parameter(torch.ones(3)),
        lambda: torch.ones(3).as_subclass(Kind),
        Thing,
        lambda: [torch.ones(3)],
        lambda: {"x": Thing()},
    ],
)
def test_none_is_not_what_is_gone(make: Callable[[], Any]) -> None:
    value = make()
    known = seen(value)
    value = [None] if isinstance(value, list) else {"x": None} if isinstance(value, dict) else None
    gc.collect()
    assert not known.is_still(value)


def test_nor_is_it_in_inference_mode() -> None:
    with torch.inference_mode():
        value: Any = torch.ones(3)
        known = seen(value)
        value = None
        assert not known.is_still(value)


def test_fields_that_no_attribute_keeps() -> None:
    @dataclass(init=False)
    class Shown:
        value: int

        def __init__(self, value: int) -> None:
            self.kept = value

        @property  # type: ignore[no-redef]
        def value(self) -> int:
            return self.kept

    @dataclass(init=False)
    class Served:
        value: int

        def __init__(self, value: int) -> None:
            self.kept = value

        def __getattr__(self, name: str) -> int:
            if name == "value":
                return self.kept
            raise AttributeError(name)

    many = make_dataclass("Many", [f"field_{number}" for number in range(70)], slots=True)
    for value in (Shown(1), Served(1)):
        known = seen(value)
        assert known.is_still(value)
        value.kept = 2
        assert not known.is_still(value)
    value = many(*range(70))
    known = seen(value)
    assert known.is_still(value)
    value.field_69 = 0
    assert not known.is_still(value)
