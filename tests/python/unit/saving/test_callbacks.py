from __future__ import annotations

import functools
import warnings
from typing import Any

import pytest
import torch

from shapetrace.capture.results import ResultEntry
from shapetrace.saving.callbacks import (
    call_callback,
    call_pre_save,
    stack_padded_tensors,
    stack_tensors,
)


def entry(*values: Any) -> ResultEntry:
    numbers = list(range(len(values)))
    return ResultEntry(numbers, [0] * len(values), list(values))


def test_tensors_of_one_shape_become_one() -> None:
    values: list[Any] = [torch.ones(2, 3), torch.zeros(2, 3)]
    before = values
    stack_tensors("forward", values, [1, 2])
    assert values is before
    (stacked,) = values
    assert torch.equal(stacked, torch.stack([torch.ones(2, 3), torch.zeros(2, 3)]))


def test_padding_is_zeros_at_the_end() -> None:
    values: list[Any] = [torch.ones(1, 2), torch.ones(2, 1)]
    stack_padded_tensors("forward", values, [1, 2], [0, 0])
    assert values[0].tolist() == [[[1, 1], [0, 0]], [[1, 0], [1, 0]]]


def test_fewer_dimensions_get_more_in_front() -> None:
    values: list[Any] = [torch.tensor(5), torch.tensor([1, 2]), torch.tensor([[3], [4]])]
    stack_padded_tensors("forward", values, [1, 2, 3])
    assert values[0].tolist() == [[[5, 0], [0, 0]], [[1, 2], [0, 0]], [[3, 0], [4, 0]]]


def test_stacks_can_be_stacked_again() -> None:
    first, second = [torch.ones(4, 2)], [torch.ones(3, 2)]
    stack_padded_tensors("x", first)
    stack_padded_tensors("x", second)
    values: list[Any] = [*first, *second]
    stack_padded_tensors("x", values)
    assert values[0].shape == (2, 1, 4, 2)


def test_scalars_and_empty_tensors_are_stacked() -> None:
    values: list[Any] = [torch.tensor(1.0), torch.tensor(2.0)]
    stack_padded_tensors("loss", values)
    assert values[0].tolist() == [1.0, 2.0]
    values = [torch.ones(0, 3), torch.ones(2, 3)]
    stack_padded_tensors("x", values)
    assert values[0].tolist() == [[[0] * 3] * 2, [[1] * 3] * 2]


def test_nothing_stays_nothing() -> None:
    values: list[Any] = []
    stack_tensors("x", values)
    stack_padded_tensors("x", values)
    assert values == []


@pytest.mark.parametrize(
    "dtype",
    [torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.bool, torch.complex64],
)
def test_every_dtype_is_kept(dtype: torch.dtype) -> None:
    for stack in (stack_tensors, stack_padded_tensors):
        values: list[Any] = [torch.ones(2).to(dtype), torch.zeros(2).to(dtype)]
        stack("x", values)
        assert values[0].dtype == dtype
        assert values[0].to(torch.complex64).tolist() == [[1, 1], [0, 0]]


def test_dtypes_that_differ_are_promoted() -> None:
    values: list[Any] = [torch.ones(1, dtype=torch.int32), torch.ones(1, dtype=torch.float64)]
    stack_tensors("x", values)
    assert values[0].dtype == torch.float64


def test_the_result_has_no_gradient() -> None:
    values: list[Any] = [torch.ones(1, requires_grad=True)]
    stack_tensors("x", values)
    assert not values[0].requires_grad


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([torch.ones(1), "text"], "stack_tensors left 'x' as it is: str is no tensor"),
        ([None], "NoneType is no tensor"),
        ([torch.ones(1), torch.ones(2)], r"different shapes, such as \[1\] and \[2\]. Use stack_p"),
        ([torch.ones(1).to_sparse()], "layout torch.sparse_coo"),
        (
            [torch.ones(1).to(torch.float8_e5m2), torch.ones(1)],
            "no dtype holds all of torch.float32, torch.float8_e5m2",
        ),
    ],
)
def test_what_cannot_be_stacked_is_left_and_said(values: list[Any], message: str) -> None:
    before = list(values)
    with pytest.warns(UserWarning, match=message):
        stack_tensors("x", values)
    assert all(value is old for value, old in zip(values, before, strict=True))


def test_what_is_left_at_every_gather_is_said_once() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            stack_tensors("said.once", ["text"])
    assert len(caught) == 1


def test_a_callback_gets_as_many_arguments_as_it_takes() -> None:
    heard: list[tuple[Any, ...]] = []

    class Saver:
        def __call__(self, name: str, values: list[Any], iterations: list[int]) -> None:
            heard.append((name, values, iterations))

        def method(self, name: str, values: list[Any]) -> None:
            heard.append((name, values))

    def of_four(name: str, values: Any, iterations: Any, ranks: Any, *, loud: bool = True) -> None:
        heard.append((name, values, iterations, ranks))

    result = ResultEntry([7], [1], ["value"])
    for callback in (
        of_four,
        functools.partial(of_four, loud=False),
        lambda *arguments: heard.append(arguments),
        Saver(),
        Saver().method,
        lambda name: heard.append((name,)),
    ):
        call_callback(callback, "x", result)
    everything = ("x", ["value"], [7], [1])
    assert heard == [*[everything] * 3, everything[:3], everything[:2], everything[:1]]


def test_the_newer_signature_gets_the_result_itself() -> None:
    def newer(name: str, result: ResultEntry) -> None:
        result.values = [sum(result.values)]
        result.iterations = result.iterations[-1:]
        result.ranks = result.ranks[-1:]

    results = ResultEntry([1, 2], [0, 1], [10, 20])
    call_callback(newer, "x", results)
    assert results == ResultEntry([2], [1], [30])


def test_the_stacking_callbacks_can_be_called_either_way() -> None:
    for stack in (stack_tensors, stack_padded_tensors):
        called, given = entry(torch.ones(1), torch.ones(1)), entry(torch.ones(1), torch.ones(1))
        call_callback(stack, "x", called)
        stack("x", given)
        assert called.values[0].shape == given.values[0].shape == (2, 1)
        assert called.iterations == given.iterations == [0, 1]


def test_pre_save_gives_the_value_to_save() -> None:
    assert call_pre_save(lambda name, value, iteration: value * iteration, "x", 3, 2) == 6
    assert call_pre_save(lambda name, value: None, "x", 3, 2) is None


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt()])
def test_what_a_callback_raises_is_told_with_its_name(error: BaseException) -> None:
    def broken(name: str, values: Any, iterations: Any) -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        call_callback(broken, "forward.x", entry())
    assert raised.value is error
    (note,) = error.__notes__
    assert note.startswith("Raised by the callback test_what_a_callback_raises")
    assert note.endswith("broken for 'forward.x'.")
