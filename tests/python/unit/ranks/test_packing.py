from __future__ import annotations

import collections
import dataclasses
from typing import Any

import numpy
import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from shapetrace.capture.results import ResultEntry, Round
from shapetrace.ranks.packing import Problem, pack, unpack

Pair = collections.namedtuple("Pair", "first second")


@dataclasses.dataclass
class Output:
    scores: torch.Tensor
    name: str


def packed_up(round: Round) -> tuple[memoryview, list[Problem]]:
    pieces, problems = pack(round)
    return memoryview(b"".join(pieces)), problems


def there_and_back(*values: Any) -> list[Any]:
    entry = ResultEntry(list(range(len(values))), [3] * len(values), list(values))
    packed, problems = packed_up(Round(7, 3, "eval", {"x": entry}))
    assert problems == []
    round, problems = unpack(packed)
    assert problems == []
    assert (round.number, round.rank, round.mode) == (7, 3, "eval")
    assert round.entries["x"].iterations == entry.iterations
    assert round.entries["x"].ranks == entry.ranks
    return round.entries["x"].values


DTYPES = sorted(
    {
        value
        for name, value in vars(torch).items()
        if isinstance(value, torch.dtype) and not name.startswith(("q", "bits"))
    },
    key=str,
)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_tensors_of_every_dtype_are_the_same_bit_for_bit(dtype: torch.dtype) -> None:
    bits = torch.arange(96, dtype=torch.uint8)
    sent = bits.view(torch.bool) if dtype == torch.bool else bits.view(dtype)
    if dtype == torch.bool:
        sent = bits % 2 == 0
    for value in (sent.reshape(2, -1), sent[0], sent[:0].reshape(0, 4)):
        (arrived,) = there_and_back(value)
        assert (arrived.dtype, arrived.shape) == (dtype, value.shape)
        left, right = (of.contiguous().reshape(-1).view(torch.uint8) for of in (value, arrived))
        assert torch.equal(left, right)


def test_what_a_tensor_looks_like_arrives_and_not_its_storage() -> None:
    storage = torch.arange(1_000_000)
    view = storage.reshape(1000, 1000).t()[1, 1:4]
    packed, _ = packed_up(Round(1, 1, "train", {"x": ResultEntry([1], [1], [view])}))
    assert len(packed) < 1000
    assert unpack(packed)[0].entries["x"].values[0].tolist() == view.tolist()
    (conjugate, negative) = there_and_back(
        torch.tensor([1 + 2j]).conj(), torch.tensor([1 + 2j]).conj().imag
    )
    assert (conjugate.tolist(), negative.tolist()) == ([1 - 2j], [-2.0])


def test_what_arrives_can_be_written_to() -> None:
    (arrived,) = there_and_back(torch.ones(3))
    arrived += 1
    assert arrived.tolist() == [2, 2, 2]


def test_gradients_stay_where_they_are() -> None:
    parameter = torch.nn.Parameter(torch.ones(2))
    for arrived in there_and_back(parameter, parameter * 2):
        assert type(arrived) is torch.Tensor
        assert not arrived.requires_grad


def test_containers_arrive_as_they_are() -> None:
    tensor = torch.ones(1)
    sent = [
        None,
        True,
        "text",
        Pair(tensor, [tensor]),
        {"k": (1, 2.5)},
        Output(tensor, "name"),
        torch.eye(3).to_sparse(),
        torch.empty(2, device="meta"),
        numpy.arange(4.0).reshape(2, 2).T,
    ]
    arrived = there_and_back(*sent)
    assert arrived[:3] == sent[:3]
    assert arrived[3].second[0].tolist() == [1]
    assert arrived[4] == {"k": (1, 2.5)}
    assert (arrived[5].scores.tolist(), arrived[5].name) == ([1], "name")
    assert torch.equal(arrived[6].to_dense(), torch.eye(3))
    assert arrived[7].is_meta
    assert arrived[8].tolist() == [[0, 2], [1, 3]]


def test_the_same_tensor_twice_in_a_value_is_sent_once() -> None:
    tensor = torch.ones(100_000)
    packed, _ = packed_up(Round(1, 1, "train", {"x": ResultEntry([1], [1], [[tensor, tensor]])}))
    assert len(packed) < 500_000
    first, second = unpack(packed)[0].entries["x"].values[0]
    assert first is second


def test_what_fails_is_left_out_alone() -> None:
    class Local:
        pass

    entries = {
        "x": ResultEntry([1, 2, 3], [1, 1, 1], ["good", Local(), "better"]),
        "stack": ResultEntry([1, 2, 3], [], [Local()]),
        "y": ResultEntry([1], [1], ["fine"]),
    }
    packed, problems = packed_up(Round(1, 1, "train", entries))
    assert len(problems) == 2
    assert problems[0][0].startswith("rank 1: values of 'x' were left out, they cannot be sent to")
    arrived = unpack(packed)[0].entries
    assert arrived["x"] == ResultEntry([1, 3], [1, 1], ["good", "better"])
    assert arrived["stack"] == ResultEntry()
    assert arrived["y"] == entries["y"]


class Strange:
    """A class that rank 0 cannot make again."""

    def __reduce__(self) -> Any:
        return int, ("no number",)


def test_what_cannot_be_made_again_is_left_out_alone() -> None:
    entry = ResultEntry([1, 2], [1, 1], [Strange(), 5])
    packed, problems = packed_up(Round(1, 1, "train", {"x": entry}))
    assert problems == []
    round, problems = unpack(packed)
    assert round.entries["x"] == ResultEntry([2], [1], [5])
    ((text, _),) = problems
    assert text.startswith("rank 1: values of 'x' were left out, they cannot be made again on rank")


def test_no_mode_of_the_program_hears_of_it() -> None:
    heard: list[Any] = []

    class Functions(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            heard.append(func)
            return func(*args, **(kwargs or {}))

    class Operators(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            heard.append(func)
            return func(*args, **(kwargs or {}))

    entry = ResultEntry([1], [1], [torch.ones(2, requires_grad=True)])
    with Functions(), Operators():
        pack(Round(1, 1, "train", {"x": entry}))
    assert heard == []
