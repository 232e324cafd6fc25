"""The view of captured values as text, from plain events."""

from __future__ import annotations

import pytest

from shapetrace.events.captured import (
    CapturedFile,
    CapturedLeaf,
    CapturedName,
    CapturedPart,
    Histogram,
    Statistics,
)
from shapetrace.events.model import Container, DimensionRange, Other, Tensor, Value
from shapetrace.views.captured import number_text, render_captured
from shapetrace.views.styled import cells
from shapetrace.views.terminal_text import to_text
from shapetrace.views.view_options import ViewOptions
from tests.python.unit.views.expected import assert_expected

WIDTHS = (60, 80, 140)
CAPTURED = (*(f"captured.{width}.txt" for width in WIDTHS), "captured.verbose.txt")
"""The expected files that belong to these tests."""

BELL = (1, 2, 8, 30, 90, 170, 220, 240, 230, 180, 100, 40, 9, 4, 1, 1)


def f32(*shape: int | DimensionRange) -> Tensor:
    return Tensor(shape, "float32")


def figures(
    low: float = -4.2134,
    high: float = 4.0251,
    mean: float = 0.01312,
    counts: tuple[int, ...] = BELL,
    total: int = 12_800,
    *,
    looked_at: int | None = None,
    not_numbers: int = 0,
    infinite: int = 0,
) -> Statistics:
    return Statistics(
        total,
        total if looked_at is None else looked_at,
        low,
        high,
        mean,
        not_numbers,
        infinite,
        Histogram(low, high, counts) if counts else None,
    )


def name(
    path: str,
    *parts: tuple[Value, int, dict[str, Statistics | None]],
    iterations: tuple[int, int] = (1, 40),
    ranks: tuple[int, ...] = (0, 1, 2, 3),
) -> CapturedName:
    made = tuple(
        CapturedPart(
            value,
            count,
            tuple(CapturedLeaf(place, Other("?"), those) for place, those in leaves.items()),
        )
        for value, count, leaves in parts
    )
    count = sum(part.count for part in made)
    return CapturedName(path, count, *iterations, ranks, made)


RUN = CapturedFile(
    "run.h5",
    1_234_567,
    (
        name("forward", (f32(32, 10), 40, {"": figures()})),
        name(
            "forward.batch",
            (
                Container(
                    "dict",
                    (f32(32, DimensionRange(1, 512)), Tensor((32,), "int64")),
                    ("input", "target"),
                ),
                40,
                {
                    ".input": figures(
                        0, 2.82, 0.0012, (900, *[3] * 15), not_numbers=3, infinite=1200
                    ),
                    ".target": figures(0, 9, 4.47, (5, 0, 5, 5, 0, 5, 5, 5)),
                },
            ),
        ),
        name(
            "layers.11.attention.self_attention.forward.scores.of_a_very_long_local_name",
            (f32(32, 12, DimensionRange(1, 512), 512), 40, {"": figures(looked_at=400)}),
            iterations=(12, 12),
            ranks=(2,),
        ),
        name(
            "loss",
            (Other("float"), 38, {"": figures(0.0213, 2.31, 0.48, (40, 9, 4, 2, 1, 1, 0, 1), 38)}),
            (Other("None"), 2, {"": None}),
        ),
        name("always", (Tensor((2,), "bool"), 40, {"": figures(1, 1, 1, ())})),
        name("nothing", (f32(0, 3), 40, {"": Statistics(0, 0)})),
        name("all.nan", (f32(3), 1, {"": Statistics(3, 3, not_numbers=3)}), iterations=(1, 1)),
        name(
            "spectrum",
            (
                Tensor((8,), "complex64"),
                1_000_000,
                {
                    "": Statistics(
                        8_000_000,
                        4_100_000,
                        0.0,
                        1.5e7,
                        12.5,
                        is_magnitude=True,
                        histogram=Histogram(0.0, 1.5e7, BELL),
                    )
                },
            ),
            ranks=(0, 3),
        ),
        name("stage", (Other("str"), 40, {"": None})),
        name(
            "hidden_states",
            (
                Container("tuple", tuple(f32(4, 4) for _ in range(14))),
                3,
                {f".{index}": figures() for index in range(14)},
            ),
        ),
    ),
    missing_ranks=(4,),
    problems=("run.h5: 12 values (iterations 9–12) are missing in it (no space left on device)",),
)

EMPTY = CapturedFile("empty.h5", 2048, ())


@pytest.mark.parametrize("width", WIDTHS)
def test_text(width: int) -> None:
    text = render_captured(RUN, ViewOptions(width=width)).plain()
    assert all(cells(line) <= width for line in text.splitlines())
    assert_expected(f"captured.{width}.txt", text)


def test_verbose_text() -> None:
    text = render_captured(RUN, ViewOptions(width=80, verbose=True)).plain()
    assert_expected("captured.verbose.txt", text)


def test_nothing_captured() -> None:
    assert render_captured(EMPTY).plain() == (
        "empty.h5: 0 names, 0 values, 2.05 KB\n\nnothing has been captured\n"
    )


def test_a_terminal_that_has_no_bars() -> None:
    text = to_text(render_captured(RUN, ViewOptions(width=80)), encoding="ascii")
    assert "  ....-+###*-:....  -4.213" in text
    assert "\\u" not in text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        *((0, "0"), (-0.0, "0"), (12345, "12345"), (1.0, "1"), (0.031249, "0.03125")),
        *((1e-5, "1.00e-05"), (123456.7, "1.235e+05"), (2**40, "1.10e+12"), (-2.5, "-2.5")),
    ],
)
def test_numbers(number: float, text: str) -> None:
    assert number_text(number) == text


def test_ranks_that_only_a_damaged_file_can_have() -> None:
    """They are not counted out, which would take all memory."""
    ranks = (-(1 << 62), 0, 1 << 62)
    file = CapturedFile("run.h5", 1, (name("x", (f32(2), 1, {"": None}), ranks=ranks),))
    assert f"ranks {ranks[0]}, 0, {ranks[2]}" in render_captured(file).plain()
