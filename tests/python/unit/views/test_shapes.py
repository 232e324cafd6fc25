from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from shapetrace.events.model import Container, DimensionRange, Other, Tensor, Value
from shapetrace.views.shapes import (
    dtype_text,
    merge_text,
    result_text,
    tensor_text,
    value_text,
    values_text,
)
from tests.python.unit.views.builder import f32, i64

BACKEND = Path(__file__).parents[4] / "python_backend"


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        ("float64", "f64"),
        ("float32", "f32"),
        ("torch.float32", "f32"),
        ("float16", "f16"),
        ("bfloat16", "bf16"),
        ("float8_e4m3fn", "f8e4m3fn"),
        ("float8_e5m2", "f8e5m2"),
        ("float8_e4m3fnuz", "f8e4m3fnuz"),
        ("float8_e5m2fnuz", "f8e5m2fnuz"),
        ("float8_e8m0fnu", "f8e8m0fnu"),
        ("int64", "i64"),
        ("int32", "i32"),
        ("int16", "i16"),
        ("int8", "i8"),
        ("uint8", "u8"),
        ("uint16", "u16"),
        ("uint32", "u32"),
        ("uint64", "u64"),
        ("uint4", "u4"),
        ("complex64", "c64"),
        ("complex128", "c128"),
        ("bool", "bool"),
        ("qint8", "q8"),
        ("quint8", "qu8"),
        ("quint4x2", "qu4x2"),
        ("bits1x8", "bits1x8"),
        ("float2_from_the_future", "float2_from_the_future"),
    ],
)
def test_dtypes_are_short_and_unknown_ones_keep_their_name(dtype: str, text: str) -> None:
    assert dtype_text(dtype) == text


@pytest.mark.parametrize(
    ("tensor", "text"),
    [
        (f32(2, 16, 64), "f32[2,16,64]"),
        (f32(), "f32[]"),
        (f32(0), "f32[0]"),
        (Tensor(shape=None, dtype="float32"), "f32[?]"),
        (Tensor(shape=(2, 16), dtype="float32", device="cuda:0"), "f32[2,16]@cuda:0"),
        (Tensor(shape=(2,), dtype="int8", device="meta"), "i8[2]@meta"),
        (Tensor(shape=("s0", 64), dtype="float32"), "f32[s0,64]"),
        (Tensor(shape=(DimensionRange(1, 512), 64), dtype="float32"), "f32[1..512,64]"),
    ],
)
def test_tensors(tensor: Tensor, text: str) -> None:
    assert tensor_text(tensor) == text


PAIR = Container("tuple", (f32(2, 3), f32(2)))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (PAIR, "(f32[2,3], f32[2])"),
        (Container("tuple", (f32(2),)), "(f32[2],)"),
        (Container("tuple", ()), "()"),
        (Container("list", (f32(2), f32(2))), "[f32[2], f32[2]]"),
        (Container("list", (f32(2),) * 12), "[f32[2] ×12]"),
        (Container("tuple", (f32(2),) * 3), "(f32[2] ×3)"),
        (Container("list", (f32(1), *(f32(2),) * 3, f32(1))), "[f32[1], f32[2] ×3, f32[1]]"),
        (Container("list", (f32(2),) * 4, length=100), "[f32[2] ×4, …]"),
        (Container("tuple", (PAIR,) * 6), "((f32[2,3], f32[2]) ×6)"),
        (
            Container("list", tuple(f32(size) for size in range(2)), length=70),
            "[f32[0], f32[1], …]",
        ),
        (Container("dict", (f32(2), Other("3")), ("a", "b")), "{a: f32[2], b: 3}"),
        (Container("dict", (), ()), "{}"),
        (Container("dict", ()), "{}"),
        (Container("set", (Other("1"),)), "{1}"),
        (Container("set", ()), "set()"),
        (
            Container("max", (f32(2), i64(2)), ("values", "indices")),
            "max(values: f32[2], indices: i64[2])",
        ),
        (Container("Odd", (f32(2), f32(3)), ("only",)), "Odd(only: f32[2], f32[3])"),
        (Other("None"), "None"),
    ],
)
def test_containers(value: Value, text: str) -> None:
    assert value_text(value) == text


def test_a_long_container_is_cut_where_nothing_else_limits_it() -> None:
    text = value_text(Container("list", tuple(f32(size) for size in range(40))))
    assert text.startswith("[f32[0], f32[1], ")
    assert text.endswith("f32[15], …]")


OUTPUT = Container(
    "BaseModelOutput",
    (f32(2, 7, 100), Container("tuple", (PAIR,) * 12)),
    ("last_hidden_state", "past_key_values"),
)


@pytest.mark.parametrize(
    ("value", "length", "text"),
    [
        (f32(2, 16, 64), 12, "f32[2,16,64]"),
        (f32(2, 16, 64), 11, "f32[2,…,64]"),
        (f32(2, 16, 64), 8, "f32[2,…]"),
        (f32(2, 16, 64), 3, "f3…"),
        (f32(1, 2, 3, 4, 5, 6), 14, "f32[1,2,…,5,6]"),
        (OUTPUT, 20, "BaseModelOutput(las…"),
        (OUTPUT, 43, "BaseMo…(last_hidden_state: f32[2,7,100], …)"),
        (OUTPUT, 55, "BaseModelOutput(last_hidden_state: f32[2,7,100], …)"),
        (Container("tuple", (f32(2), f32(3), f32(4))), 18, "(f32[2], …)"),
        (Other("a long text"), 7, "a long…"),
    ],
)
def test_text_keeps_to_a_length(value: Value, length: int, text: str) -> None:
    assert value_text(value, length) == text
    assert len(value_text(value, length)) <= length


@pytest.mark.parametrize("length", range(1, 44))
def test_no_length_is_ever_exceeded(length: int) -> None:
    for value in (f32(2, 16, 64), OUTPUT, PAIR, Other("some text"), Container("list", (OUTPUT,))):
        assert len(value_text(value, length)) <= length
        assert len(merge_text([value, f32(1), i64(2)], length)) <= length
    assert len(values_text([f32(2, 3), f32(4)], length)) <= length


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([f32(2, 16)], "f32[2,16]"),
        ([f32(8, 16, 64), f32(2, 16, 64), f32(8, 16, 64)], "f32[2|8,16,64]"),
        ([f32(size, 64) for size in (1, 2, 3)], "f32[1|2|3,64]"),
        ([f32(size, 64) for size in (1, 2, 3, 512)], "f32[1..512,64]"),
        ([Tensor((DimensionRange(4, 9), 2), "float32"), f32(2, 2)], "f32[2..9,2]"),
        ([Tensor(("s0",), "float32"), f32(2)], "f32[2|s0]"),
        ([Tensor((f"s{n}",), "float32") for n in range(5)], "f32[s0|s1|s2|…]"),
        ([f32(), f32()], "f32[]"),
        ([f32(2, 3), i64(2)], "f32[2,3] | i64[2]"),
        ([f32(2, 3), f32(2)], "f32[2,3] | f32[2]"),
        ([f32(2), Other("None")], "f32[2] | None"),
        ([Tensor(None, "float32"), f32(2)], "f32[?] | f32[2]"),
        ([f32(*(1,) * rank) for rank in range(5)], "f32[] | f32[1] | f32[1,1] | …"),
        (
            [Container("tuple", (f32(size, 3), i64(size))) for size in (2, 4)],
            "(f32[2|4,3], i64[2|4])",
        ),
        (
            [Container("dict", (f32(size),), ("a",)) for size in (2, 4)],
            "{a: f32[2|4]}",
        ),
        (
            [Container("dict", (f32(2),), ("a",)), Container("dict", (f32(2),), ("b",))],
            "{a: f32[2]} | {b: f32[2]}",
        ),
        ([], ""),
    ],
)
def test_calls_that_differ_are_merged(values: list[Value], text: str) -> None:
    assert merge_text(values) == text


@pytest.mark.parametrize(
    ("outputs", "result", "text"),
    [
        ((f32(2),), None, "f32[2]"),
        ((f32(2), i64(2)), "tuple", "(f32[2], i64[2])"),
        ((f32(2),), "tuple", "(f32[2],)"),
        ((f32(2), f32(3)), "list", "[f32[2], f32[3]]"),
        ((f32(2), i64(2)), "max", "max(f32[2], i64[2])"),
        ((), None, "None"),
        ((), "tuple", "()"),
    ],
)
def test_results(outputs: tuple[Value, ...], result: str | None, text: str) -> None:
    assert result_text(outputs, result) == text


def test_loading_shapes_loads_no_other_view() -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import shapetrace.views.shapes\n"
        "print(sorted(name for name in sys.modules if name.startswith('shapetrace.views.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(BACKEND)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "['shapetrace.views.shapes']"
