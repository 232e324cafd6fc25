"""Copies: of every kind of value, and with nobody noticing."""

from __future__ import annotations

import enum
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import shapetrace
from shapetrace.capture.copies import CannotCopyError, copied, text_of


class Color(enum.Enum):
    RED = 1


Pair = namedtuple("Pair", "first second")


@dataclass(frozen=True)
class Batch:
    x: Any
    size: int


def grad_tensor() -> torch.Tensor:
    return torch.ones(2, 3, requires_grad=True) * 2


def test_a_copy_is_detached_and_its_own() -> None:
    x = grad_tensor()
    copy = copied(x)
    assert torch.equal(copy, x)
    assert not copy.requires_grad
    assert copy.grad_fn is None
    assert copy.data_ptr() != x.data_ptr()
    assert x.grad_fn is not None
    assert x._version == 0


@pytest.mark.parametrize(
    "value",
    [1, 0.5, 1j, True, "text", b"bytes", None, ..., Color.RED, torch.float32, torch.device("cpu")],
)
def test_what_never_changes_is_stored_as_it_is(value: object) -> None:
    assert copied(value) is value


def test_containers_are_made_anew_around_copies() -> None:
    x = grad_tensor()
    value = {"a": [x, (x, 1)], 2: Pair(x, "b"), "o": OrderedDict(z=x)}
    copy = copied(value)
    x.data.zero_()
    assert list(copy) == ["a", 2, "o"]
    assert type(copy[2]) is Pair
    for each in (copy["a"][0], copy["a"][1][0], copy[2].first, copy["o"]["z"]):
        assert torch.equal(each, torch.full((2, 3), 2.0))
        assert each.grad_fn is None


def test_a_dataclass_stays_one() -> None:
    x = grad_tensor()
    copy = copied(Batch(x, 2))
    assert type(copy) is Batch
    assert copy.size == 2
    assert copy.x.grad_fn is None


def test_the_code_of_containers_is_not_run() -> None:
    class Row(list[Any]):
        def __iter__(self) -> Any:
            raise AssertionError

    class Some(frozenset[Any]):
        def __iter__(self) -> Any:
            raise AssertionError

    assert copied(Row([1, Some([2])])) == [1, {2}]


def test_a_container_that_is_in_itself() -> None:
    value: list[Any] = [1]
    value.append(value)
    copy = copied(value)
    assert copy[1] is copy


def test_named_results_of_torch_are_tuples() -> None:
    values, indices = copied(torch.max(grad_tensor(), dim=1))
    assert values.tolist() == [2, 2]
    assert indices.tolist() == [0, 0]


def test_arrays() -> None:
    array = np.arange(3)
    copy = copied(array)
    array[0] = 7
    assert copy.tolist() == [0, 1, 2]
    assert copied(np.float32(2)).dtype == np.float32


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (nn.Linear(2, 2), "<Linear>"),
        (object(), "<object>"),
        (grad_tensor, "<function grad_tensor>"),
        (Color, "<class Color>"),
        (iter([]), "<list_iterator>"),
    ],
)
def test_other_objects_are_told_of_in_a_few_words(value: object, text: str) -> None:
    assert copied(value) == text
    assert copied([value]) == [text]


class Nasty:
    """Whatever is asked of it raises."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(name)

    def __repr__(self) -> str:
        raise AssertionError

    def __eq__(self, other: object) -> bool:
        raise AssertionError

    __hash__ = None  # type: ignore[assignment]


def test_no_code_of_objects_runs() -> None:
    assert copied({"a": Nasty()}) == {"a": "<Nasty>"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.ones(2, 3).to_sparse(),
        lambda: torch.ones(2, 3).to_sparse_csr(),
        lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8),
        lambda: torch.ones(3, dtype=torch.bfloat16),
        lambda: torch.ones(3).to(torch.float8_e4m3fn),
        lambda: torch.ones(2, dtype=torch.complex64).conj(),
        lambda: torch.ones(1).expand(4),
        lambda: torch.ones(4, 3).T,
        lambda: torch.ones(()),
        lambda: torch.ones(0, 3),
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        lambda: torch.ones(3, device="meta"),
    ],
)
def test_every_kind_of_tensor(make: Any) -> None:
    x = make()
    copy = copied(x)
    assert (copy.dtype, copy.layout, copy.device) == (x.dtype, x.layout, x.device)
    if x.layout is torch.strided and not x.is_nested and not x.is_quantized:
        assert copy.shape == x.shape
        if not x.is_meta:
            assert copied(copy).tolist() == x.tolist()


def test_what_a_subclass_does_itself_it_does() -> None:
    class Own(torch.Tensor):
        pass

    copy = copied(torch.ones(2).as_subclass(Own))
    assert torch.equal(copy, torch.ones(2))


def test_values_in_a_transform_are_refused() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        with pytest.raises(CannotCopyError, match="vmap"):
            copied(x)
        assert copied([x]) == ["<nothing is copied within a function transform such as vmap>"]
        return x

    torch.vmap(f)(torch.ones(2, 3))


def test_values_without_data_are_refused() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    real = torch.ones(2)
    with FakeTensorMode():
        with pytest.raises(CannotCopyError, match="a FakeTensor has no data"):
            copied(torch.ones(2))
        assert copied(real).tolist() == [1, 1]
    with pytest.raises(CannotCopyError, match="UninitializedParameter"):
        copied(nn.LazyLinear(3).weight)


class Counting(TorchFunctionMode):
    def __init__(self) -> None:
        self.calls: list[Any] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls.append(func)
        return func(*args, **(kwargs or {}))


class CountingKernels(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls.append(func)
        return func(*args, **(kwargs or {}))


def test_no_mode_and_no_recording_notices() -> None:
    x, parameter = grad_tensor(), nn.Parameter(torch.ones(2))
    value = [x, {"a": parameter}, torch.ones(2).as_subclass(torch.Tensor)]
    with shapetrace.trace(level="aten") as trace:
        copied(value)
    assert trace.ops == ()
    with Counting() as functions, CountingKernels() as kernels:
        copied(value)
        assert functions.calls == kernels.calls == []
        torch.ones(1)
    assert len(functions.calls) == len(kernels.calls) == 1


def test_copies_are_of_the_cpu_whatever_the_default_device_is() -> None:
    x = torch.ones(2)
    with torch.device("meta"):
        assert copied(x).tolist() == [1, 1]


def test_copies_made_in_inference_mode_are_ordinary() -> None:
    with torch.inference_mode():
        copy = copied(torch.ones(2))
    assert not copy.is_inference()
    assert (nn.Parameter(torch.ones(2)) * copy).requires_grad


def test_random_numbers_and_autocast_are_as_before() -> None:
    torch.manual_seed(0)
    first = torch.rand(3)
    torch.manual_seed(0)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert copied(torch.ones(2) * 1.001).dtype == torch.float32
    assert torch.equal(torch.rand(3), first)


def test_gradients_are_as_without_a_copy() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    copied(y)
    y.add_(1)
    copied([y])
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2, 2, 2]


def test_naming_what_is_not_copied_asks_nothing_of_it() -> None:
    asked: list[str] = []

    class Asked:
        def __getattribute__(self, name: str) -> object:
            asked.append(name)
            return type

    assert text_of(Asked()) == "<Asked>"
    assert text_of(Asked).endswith("<locals>.Asked>")
    assert text_of(len) == "<function len>"
    assert asked == []
