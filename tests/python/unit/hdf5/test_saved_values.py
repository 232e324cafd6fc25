"""Whatever a program can capture is in the file as it was, or is told of."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing._internal.two_tensor import TwoTensor

from shapetrace.hdf5.reading import read_values
from shapetrace.hdf5.saver import H5PYSaverCallback
from tests.support.torches import needs

Output = namedtuple("Output", "loss logits")


@dataclasses.dataclass
class State:
    step: int
    hidden: torch.Tensor


def saved(path: Path, values: list[Any], **options: Any) -> list[Any]:
    """The values after a way through a file."""
    with H5PYSaverCallback(path, **options) as saver:
        saver("x", list(values), list(range(len(values))))
    assert saver.problems == []
    read = read_values(path, "x")
    assert [item.iterations for item in read] == [(number,) for number in range(len(values))]
    assert {item.ranks for item in read} == {(0,)}
    return [item.value for item in read]


def bits(tensor: torch.Tensor) -> list[int]:
    return tensor.contiguous().view(torch.uint8).flatten().tolist() if tensor.numel() else []


def same(a: Any, b: Any) -> bool:
    """Whether two values are equal in type, shape and every bit."""
    if isinstance(a, torch.Tensor):
        if a.is_nested:
            return a.layout == b.layout and all(map(same, a.unbind(), b.unbind()))
        alike = (a.shape, a.dtype, a.layout) == (b.shape, b.dtype, b.layout)
        if a.is_quantized:
            return alike and torch.equal(a.int_repr(), b.int_repr()) and torch.equal(a, b)
        if a.layout is not torch.strided:
            return alike and torch.equal(a.to_dense(), b.to_dense())
        return alike and (bits(a[None]) == bits(b[None]))
    if isinstance(a, (np.ndarray, np.generic)):
        alike = type(a) is type(b) and (a.shape, a.dtype) == (b.shape, b.dtype)
        return alike and a.tobytes() == b.tobytes()
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(map(same, a.values(), b.values()))
    if isinstance(a, float) and math.isnan(a):
        return math.isnan(b)
    return bool(a == b)


DTYPES = [
    *("float64", "float32", "float16", "bfloat16"),
    *("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"),
    *("complex32", "complex64", "complex128", "int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64"),
]


@pytest.mark.parametrize("name", DTYPES)
def test_all_bits_of_a_tensor(tmp_path: Path, name: str) -> None:
    needs(f"torch.{name}")
    torch.manual_seed(0)
    patterns = torch.randint(0, 256, (3, 5, 64), dtype=torch.uint8).view(getattr(torch, name))
    (read,) = saved(tmp_path / "x.h5", [patterns])
    assert same(patterns, read)


def test_every_bfloat16(tmp_path: Path) -> None:
    every = torch.arange(2**16, dtype=torch.int32).to(torch.int16).view(torch.bfloat16)
    (read,) = saved(tmp_path / "x.h5", [every])
    assert same(every, read)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e5m2], ids=str)
def test_other_readers_see_numbers_where_hdf5_can_have_them(
    tmp_path: Path, dtype: torch.dtype
) -> None:
    values = torch.tensor([1.5, -0.0, 2.0**-16, math.inf, -math.inf, math.nan]).to(dtype)
    saved(tmp_path / "x.h5", [values])
    with h5py.File(tmp_path / "x.h5") as file:
        assert file["x"].attrs["torch_dtype"] == str(dtype).removeprefix("torch.")
        np.testing.assert_array_equal(file["x"][0].astype("f4"), values.float().numpy())


KINDS: dict[str, Callable[[], torch.Tensor]] = {
    "scalar": lambda: torch.tensor(2.5),
    "bool scalar": lambda: torch.tensor(True),
    "empty": lambda: torch.zeros(0),
    "zero size": lambda: torch.zeros(3, 0, 2),
    "leaf": lambda: torch.ones(2, 3, requires_grad=True),
    "parameter": lambda: torch.nn.Parameter(torch.ones(2)),
    "in a graph": lambda: torch.ones(3, requires_grad=True) * 2,
    "transposed": lambda: torch.arange(12).reshape(3, 4).t(),
    "strided": lambda: torch.arange(12.0)[::3],
    "expanded": lambda: torch.ones(2, 3).expand(4, 2, 3),
    "conjugate": lambda: torch.ones(2, dtype=torch.complex64).conj(),
    "negative": lambda: torch.ones(2, dtype=torch.complex64).conj().imag,
    "bool": lambda: torch.tensor([True, False]),
    "coo": lambda: torch.eye(3).to_sparse(),
    "hybrid coo": lambda: torch.eye(3).to_sparse(1),
    "not coalesced": lambda: torch.sparse_coo_tensor(
        torch.tensor([[0, 0]]), torch.tensor([1.0, 2.0]), (2,)
    ),
    "csr": lambda: torch.eye(3).to_sparse_csr(),
    "csc": lambda: torch.eye(3).to_sparse_csc(),
    "bsr": lambda: torch.eye(4).to_sparse_bsr((2, 2)),
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(3, 4), 0.1, 3, torch.quint8),
    "quantized by channel": lambda: torch.quantize_per_channel(
        torch.ones(2, 4), torch.tensor([0.1, 0.2]), torch.tensor([0, 1]), 0, torch.qint8
    ),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(5)]),
    "jagged": lambda: torch.nested.nested_tensor(
        [torch.ones(2, 3), torch.ones(5, 3)], layout=torch.jagged
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_tensors_of_every_kind(tmp_path: Path, kind: str) -> None:
    with warnings.catch_warnings():
        # Of torch's own, that some kinds are new.
        warnings.simplefilter("ignore")
        value = KINDS[kind]()
        expected = value.detach()
        if expected.layout is torch.strided and not expected.is_nested:
            expected = expected.resolve_conj().resolve_neg()
        values = saved(tmp_path / "x.h5", [value])
    assert same(expected, values[0])
    assert not values[0].requires_grad


@pytest.mark.parametrize(
    "value",
    [
        None,
        *(True, 3, -(2**63), 2**64 - 1, 2**70, -(2**200)),
        *(0.1, -0.0, math.inf, math.nan, 1 + 2j),
        *("", "plain", "äöü ∑ 🙂", "nul\0inside", "half \ud800 a character"),
        *(b"", b"bytes\0\xff\0"),
        *([], (), {}, [1, 2, 3], (1.5, 2.5), [True, False], ["a", "ä"], ["a", 1, None]),
        [[1], [2, 3], [torch.ones(2)]],
        (torch.ones(2), {"key": torch.zeros(1), "other/key": [None, "x"], "": 1}),
        {1: "int", None: "none"},
        OrderedDict(a=1, b=torch.ones(2)),
        {1, 2},
        frozenset({"a"}),
        *(torch.float32, torch.device("cuda:1"), torch.Size([2, 3])),
        *(np.float32(1.5), np.int8(-3), np.bool_(True), np.str_("x"), np.datetime64("2020-01-01")),
        np.arange(6, dtype=">i4").reshape(2, 3),
        *(np.array(["a", "bcd"]), np.array([b"a\0", b"bcd"]), np.array([], "S"), np.array(3.0)),
        *(np.zeros((0, 2)), np.array([1.5], np.longdouble), np.ones(2, np.float16)),
        np.array([(1, 2.5)], [("a", "i4"), ("b", "f8")]),
        np.array(["2020-01-01T00:00"], "M8[s]"),
    ],
    ids=lambda value: f"{type(value).__name__} {value!r}"[:40].encode("ascii", "replace").decode(),
)
def test_plain_values(tmp_path: Path, value: Any) -> None:
    (read,) = saved(tmp_path / "x.h5", [value])
    expected = dict(value) if isinstance(value, OrderedDict) else value
    expected = tuple(expected) if isinstance(expected, torch.Size) else expected
    assert same(expected, read), read


def test_classes_come_back_as_dicts(tmp_path: Path) -> None:
    values = [Output(0.5, torch.ones(2)), State(3, torch.zeros(2))]
    read = saved(tmp_path / "x.h5", values)
    assert same(read[0], {"loss": 0.5, "logits": torch.ones(2)})
    assert same(read[1], {"step": 3, "hidden": torch.zeros(2)})


def test_a_tuple_is_a_group_of_datasets(tmp_path: Path) -> None:
    saved(tmp_path / "x.h5", [(torch.ones(2), {"k": i}) for i in range(3)])
    with h5py.File(tmp_path / "x.h5") as file:
        assert file["x"]["0"].shape == (3, 2)
        assert file["x"]["1"]["k"][:].tolist() == [0, 1, 2]


SEQUENCES: dict[str, Callable[[], list[Any]]] = {
    "growing": lambda: [torch.randn(2, size) for size in (1, 2, 3, 50, 400)],
    "shrinking": lambda: [torch.randn(size, 30) for size in (400, 50, 3, 1, 0)],
    "last batch": lambda: [torch.randn(size, 30) for size in (64, 64, 64, 7) * 3],
    "prefill and decode": lambda: [torch.randn(2, size, 64) for size in (512, *[1] * 40) * 2],
    "cache": lambda: [torch.randn(2, 4, size, 8) for size in range(1, 150)],
    "dimensions": lambda: [torch.randn((2,) * (step % 4)) for step in range(12)],
    "types": lambda: [None, 1, 1.5, "x", torch.ones(2), torch.ones(2).half(), (1,), [2], None, 1],
    "ragged lists": lambda: [list(range(step)) for step in (5, 2, 900, 3)],
    "ragged texts": lambda: [["ä"] * step for step in (5, 2, 300, 3)],
    "ragged bfloat16": lambda: [torch.randn(size).bfloat16() for size in (1, 5, 3)],
    "nested and ragged": lambda: [
        (torch.randn(size, 900), [size, 1]) for size in (1, 64, 1, 1, 64, 2)
    ],
    "zero in between": lambda: [torch.randn(size, 3) for size in (2, 0, 2)],
    "large": lambda: [torch.randn(5, 1024, 1024)] * 2,
}


@pytest.mark.slow
@pytest.mark.parametrize("together", [True, False], ids=["in one call", "one by one"])
@pytest.mark.parametrize("sequence", SEQUENCES)
def test_values_that_change(tmp_path: Path, sequence: str, together: bool) -> None:
    torch.manual_seed(0)
    values = SEQUENCES[sequence]()
    path = tmp_path / "x.h5"
    with H5PYSaverCallback(path) as saver:
        if together:
            saver("x", list(values), list(range(len(values))))
        else:
            for iteration, value in enumerate(values):
                saver("x", [value], [iteration])
    assert saver.problems == []
    read = read_values(path, "x")
    assert [item.iterations[0] for item in read] == list(range(len(values)))
    assert all(same(a, b.value) for a, b in zip(values, read, strict=True))


def test_what_would_be_padding_is_not_stored(tmp_path: Path) -> None:
    values = [torch.randn(2, size, 64) for size in (512, *[1] * 400)]
    saved(tmp_path / "x.h5", values)
    real = sum(value.nbytes for value in values)
    assert (tmp_path / "x.h5").stat().st_size < 3 * real + 200_000


class Unreadable(list[int]):
    def __iter__(self) -> Any:
        raise RuntimeError("hands off")


def holding_itself() -> list[Any]:
    inside: list[Any] = []
    inside.append(inside)
    return inside


@pytest.mark.parametrize(
    "value",
    [
        object(),
        Unreadable([1, 2]),
        lambda: 0,
        torch.nn.Linear(1, 1),
        torch.ones(2, device="meta"),
        np.array([object()], object),
        np.ma.masked_array([1, 2], [True, False]),
        holding_itself(),
        [object()] * 3,
        (torch.ones(2), object()),
        [None] * 5000,
        np.array(["nul\0inside"]),
        type("Broken", (dict,), {"keys": lambda self: 1 / 0})(a=1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_stored_is_told_of_once(
    tmp_path: Path, value: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.h5"
    with H5PYSaverCallback(path) as saver:
        for iteration in range(3):
            values, iterations = [1, value, 2], [iteration] * 3
            saver("x", values, iterations)
            assert values == []
            assert iterations == []
    assert len(saver.problems) == 1
    assert saver.problems[0].startswith("x: not saved: ")
    assert "\n" not in saver.problems[0]
    assert capsys.readouterr().err == f"shapetrace: {saver.problems[0]}\n"
    assert [item.value for item in read_values(path, "x")] == [1, 2] * 3


def test_tensors_that_have_no_values_of_their_own(tmp_path: Path) -> None:
    with H5PYSaverCallback(tmp_path / "x.h5") as saver, warnings.catch_warnings():
        warnings.simplefilter("ignore")

        def saving(x: torch.Tensor) -> torch.Tensor:
            saver("transformed", [x], [0])
            return x.sum()

        torch.vmap(saving)(torch.ones(3, 2))
        with FakeTensorMode():
            saver("fake", [torch.ones(3)], [0])
        saver("two", [TwoTensor(torch.ones(2), torch.ones(2))], [0])
    assert [problem.partition(":")[0] for problem in saver.problems] == [
        *("transformed", "fake", "two"),
    ]
    assert all(": not saved: " in problem for problem in saver.problems)


def test_a_mode_of_the_programs_does_not_see_saving(tmp_path: Path) -> None:
    class Counting(torch.overrides.TorchFunctionMode):
        calls = 0

        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            Counting.calls += 1
            return func(*args, **(kwargs or {}))

    values = [torch.ones(2, requires_grad=True) * 2, torch.ones(2).bfloat16()]
    state = torch.get_rng_state()
    with Counting(), torch.device("meta"):
        Counting.calls = 0
        read = saved(tmp_path / "x.h5", values)[:0]
        assert read == []
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize(
    ("options", "value", "expected"),
    [
        ({"float_dtype": "float16"}, torch.ones(2), torch.ones(2).half()),
        ({"float_dtype": np.float32}, torch.ones(2).bfloat16(), torch.ones(2)),
        ({"float_dtype": torch.float32}, torch.ones(2).to(torch.float8_e5m2), torch.ones(2)),
        ({"float_dtype": torch.bfloat16}, torch.ones(2), torch.ones(2).bfloat16()),
        ({"float_dtype": "float32"}, torch.arange(2), torch.arange(2)),
        ({"int_dtype": np.int32}, torch.arange(2), torch.arange(2, dtype=torch.int32)),
        ({"int_dtype": torch.int8}, np.arange(2), np.arange(2, dtype="i1")),
        ({"int_dtype": "int32"}, torch.tensor([True]), torch.tensor([True])),
        ({"int_dtype": "int8"}, 3, 3),
    ],
)
def test_conversions_that_were_asked_for(
    tmp_path: Path, options: dict[str, Any], value: Any, expected: Any
) -> None:
    (read,) = saved(tmp_path / "x.h5", [value], **options)
    assert same(expected, read)


def test_integers_are_not_cut_by_a_conversion(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with H5PYSaverCallback(path, int_dtype="int8") as saver:
        saver("x", [torch.tensor([1]), torch.tensor([300])], [0, 1])
    assert [item.value.item() for item in read_values(path, "x")] == [1, 300]
    assert saver.problems == ["x: holds integers that int8 cannot; these are kept as they are"]
