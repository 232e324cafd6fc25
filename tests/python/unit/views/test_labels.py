from __future__ import annotations

import pytest

from shapetrace.events.model import Container, DimensionRange, ErrorInfo, Other, Tensor, Value
from shapetrace.views.labels import (
    Labelled,
    failure_text,
    labelled_text,
    merged_text,
    tuple_text,
)


def tensor(*shape: int, name: str | None = None) -> Tensor:
    return Tensor(shape, "float32", name=name)


def output(*sizes: int) -> Container:
    items: tuple[Value, ...] = (Other("None"), tensor(*sizes), Container("tuple", (tensor(2),)))
    return Container("CausalLMOutputWithPast", items, ("loss", "logits", "past"))


@pytest.mark.parametrize(
    ("values", "length", "expected"),
    [
        ([tensor(2, 3)], None, "f32[2,3]"),
        ([tensor(2, 3), tensor(2, 3, name="x")], 8, "f32[2,3]"),
        ([tensor(2, 3), tensor(8, 3)], None, "f32[2|8,3]"),
        ([tensor(*range(10, 30))], 20, "f32[10,11,…,28,29]"),
        ([Tensor((DimensionRange(1, 9), 4), "int64")], None, "i64[1..9,4]"),
        ([output(2, 3)], 20, "logits f32[2,3], …"),
        ([output(2, 3), output(4, 3)], 60, "logits f32[2|4,3], past (f32[2],)"),
        ([output(2, 3), tensor(4)], 24, "CausalLMOutputWithPast(…"),
    ],
)
def test_values_are_one_text(values: list[Value], length: int | None, expected: str) -> None:
    assert merged_text(values, length) == expected


@pytest.mark.parametrize(
    ("items", "length", "expected"),
    [
        ({"x": tensor(2, 3)}, 43, "x f32[2,3]"),
        ({"q": tensor(2), "k": tensor(2), "v": tensor(2)}, 43, "q,k,v f32[2]"),
        ({"q": tensor(2), "k": tensor(3), "v": tensor(2)}, 43, "q f32[2], k f32[3], v f32[2]"),
        ({"q": tensor(2), "k": tensor(3), "v": tensor(2)}, 22, "q f32[2], k f32[3], …"),
        ({"q": tensor(2), "k": tensor(3)}, 19, "q f32[2], k f32[3]"),
        ({"q": tensor(2), "k": tensor(3)}, 17, "q f32[2], …"),
        ({"x": tensor(2), "ids": tensor(1, 2, 3, 4, 5)}, 25, "x f32[2], ids f32[1,…,5]"),
        ({"a_long_name_for_a_tensor": tensor(2, 3)}, 20, "a_long_nam… f32[2,3]"),
    ],
)
def test_names_share_what_is_alike(items: dict[str, Tensor], length: int, expected: str) -> None:
    text = labelled_text([Labelled(name, (value,)) for name, value in items.items()], length)
    assert text == expected
    assert len(text) <= length


def test_items_of_a_tuple_of_which_nothing_is_known() -> None:
    assert tuple_text([(tensor(2),), (), (tensor(3), tensor(4))], 43) == "(f32[2], …, f32[3|4])"
    assert tuple_text([(tensor(2),)], 43) == "(f32[2],)"
    assert tuple_text([(tensor(2),)] * 9, 20) == "(f32[2], f32[2], f3…"


@pytest.mark.parametrize(
    ("message", "length", "expected"),
    [
        ("short", 43, "✗ short"),
        ("", 43, "✗ RuntimeError"),
        ("\n\nthe second line\nthe third", 43, "✗ the second line"),
        (
            "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)",
            43,
            "✗ mat1 and mat2 shapes … (2x3 and 4x5)",
        ),
        ("mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)", 20, "✗ mat1 and mat2 sha…"),
        ("(2x3 and 4x5)", 12, "✗ (2x3 and …"),
        ("an escape \x1b[0m", 43, "✗ an escape \\x1b[0m"),
    ],
)
def test_an_error_in_a_few_words(message: str, length: int, expected: str) -> None:
    text = failure_text(ErrorInfo("RuntimeError", message), length)
    assert text == expected
    assert len(text) <= length
