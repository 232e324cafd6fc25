from __future__ import annotations

import dataclasses

import pytest

from shapetrace.events.model import Container, Op, Other, Tensor, Value
from shapetrace.views.call_text import filled_form, module_inputs, module_marks, operands
from shapetrace.views.summary import human_number
from tests.python.unit.views import programs
from tests.python.unit.views.builder import f32, i64

OP = programs.failure().trace().ops[0]
MODULE = programs.failure().trace().modules[1]


def op(form: str, label: str, *inputs: Tensor, name: str = "torch.call") -> Op:
    return dataclasses.replace(OP, name=name, form=form, label=label, inputs=inputs)


def rows(call: Op) -> list[str]:
    """Each input of an op as ``role argument=text name traits``, without what is not there."""
    return [
        " ".join(
            part
            for part in (
                row.role,
                f"{row.argument}={row.text}" if row.argument else row.text,
                row.name,
                row.traits,
            )
            if part
        )
        for row in operands(call)
    ]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (op("{0} @ {1}", "@", f32(2, 3, name="q"), f32(3)), ["Left f32[2,3] q", "Right f32[3]"]),
        (op("2 - {0}", "-", f32(2)), ["Left 2", "Right f32[2]"]),
        (op("{0} += 1", "+=", f32(2, name="y")), ["Left f32[2] y", "Right 1"]),
        (op("{0} + [{1}]", "+", f32(2), f32(3)), ["Left f32[2]", "Right [f32[3]]"]),
        (op("-{0}", "-", f32(2)), ["Input f32[2]"]),
        (
            op("matmul({0}, {1})", "matmul()", f32(2), f32(3), name="torch.Tensor.matmul"),
            ["Left f32[2]", "Right f32[3]"],
        ),
        (
            op("add_({0}, {1})", "add_()", f32(2), f32(3), name="torch.Tensor.add_"),
            ["Left f32[2]", "Right f32[3]"],
        ),
        (op("cat([{0}, {1}])", "cat()", f32(2), i64(3)), ["Inputs f32[2]", "i64[3]"]),
        (
            op("where({0}, other={1})", "where()", f32(2), f32(3, name="y")),
            ["Inputs f32[2]", "other=f32[3] y"],
        ),
        (op("view({0}, 2)", "view(2)", f32(2)), ["Input f32[2]"]),
        (op("randn(2)", "randn(2)"), []),
        (
            op("mm({0})", "mm()", Tensor((2,), "float32", layout="sparse_coo")),
            ["Input f32[2] sparse_coo"],
        ),
        (
            op("mm({0})", "mm()", Tensor((2,), "float32", kind="DTensor", placements="Shard(0)")),
            ["Input f32[2] DTensor Shard(0)"],
        ),
        (op("mm({0})", "mm()", Tensor((2,), "float32", kind="Masked")), ["Input f32[2] Masked"]),
        (op("mm({0})", "mm()", Tensor((2,), "float32", kind="Parameter")), ["Input f32[2]"]),
    ],
)
def test_each_input_has_its_part(call: Op, expected: list[str]) -> None:
    assert rows(call) == expected


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("cat([{0}, {1}], dim=1)", "cat([f32[2], i64[3]], dim=1)"),
        ("{1}[{0}, :]", "i64[3][f32[2], :]"),
        ("call({{'a': {0}}}, {5})", "call({'a': f32[2]}, {5})"),
        ("{0} @ {0}", "f32[2] @ f32[2]"),
    ],
)
def test_forms_are_filled_with_shapes(form: str, text: str) -> None:
    assert filled_form(op(form, "", f32(2), i64(3))) == text


NONE, MANY = Other("None"), Container("list", (f32(2), f32(2)))


@pytest.mark.parametrize(
    ("inputs", "names", "room", "text"),
    [
        ((f32(2),), ("x",), None, "f32[2]"),
        ((f32(2), NONE), ("x", "mask"), None, "f32[2]"),
        ((f32(2), i64(3)), ("x", "mask"), None, "x: f32[2], mask: i64[3]"),
        ((f32(2), Other("True")), ("x", "cached"), None, "x: f32[2], cached=True"),
        ((Other("True"),), ("cached",), None, "cached=True"),
        ((f32(2), Other("int")), ("x", "depth"), None, "x: f32[2], depth: int"),
        ((MANY,), ("parts",), None, "[f32[2], f32[2]]"),
        ((f32(2), i64(3)), ("x",), None, "x: f32[2], i64[3]"),
        ((f32(2), i64(3)), ("*0", "*1"), None, "f32[2], i64[3]"),
        (
            (f32(2), i64(3), Other("True")),
            ("x", "mask", "cached"),
            30,
            "x: f32[2], mask: i64[3], …",
        ),
        ((f32(2), i64(3), Other("True")), ("x", "mask", "cached"), 17, "f32[2], i64[3], …"),
        ((f32(2), i64(3), Other("True")), ("x", "mask", "cached"), 8, "f32[2],…"),
        ((f32(2, 3, 4),), ("x",), 6, "f32[2…"),
        ((Other("a long text"),), ("x",), 6, "x=a l…"),
        ((), (), None, ""),
    ],
)
def test_arguments_of_a_module(
    inputs: tuple[Value, ...], names: tuple[str, ...], room: int | None, text: str
) -> None:
    call = dataclasses.replace(MODULE, inputs=inputs, input_names=names)
    assert module_inputs(call, room) == text


@pytest.mark.parametrize(
    ("call", "count", "enclosing_call", "marks"),
    [
        (1, 1, None, ""),
        (1, 12, None, "×12"),
        (7, 1, None, "call 7"),
        (7, 3, 2, "call 7  ×3"),
        (7, 3, 7, "×3"),
        (1, None, None, "forward called directly"),
    ],
)
def test_which_call_it_was(
    call: int, count: int | None, enclosing_call: int | None, marks: str
) -> None:
    module = dataclasses.replace(MODULE, call=call, count=count)
    enclosing = None
    if enclosing_call is not None:
        enclosing = dataclasses.replace(MODULE, call=enclosing_call)
    assert module_marks(module, enclosing) == marks


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1_000, "1.00k"),
        (9_994, "9.99k"),
        (9_999, "10.0k"),
        (99_960, "100k"),
        (402_312, "402k"),
        (999_499, "999k"),
        (999_500, "1.00M"),
        (7_241_732_096, "7.24B"),
        (1_500_000_000_000, "1.50T"),
        (1_500_000_000_000_000, "1500T"),
    ],
)
def test_large_numbers_have_three_digits(number: int, text: str) -> None:
    assert human_number(number) == text
