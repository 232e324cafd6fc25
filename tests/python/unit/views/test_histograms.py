"""Histograms as rows of bars, and several of them as one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapetrace.views.histograms import Histogram, bars, histogram_text, merged


@pytest.mark.parametrize(
    ("bins", "text"),
    [
        ((), ""),
        ((0, 0), ""),
        ((1,), "█"),
        ((1, 2, 4, 8), "▂▃▅█"),
        ((0, 1, 1000), "▁▂█"),
        ((1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 1), "▃▁▁▁▁▁▁█"),
        ((0.25, 0.5), "▅█"),
    ],
)
def test_bars(bins: tuple[float, ...], text: str) -> None:
    assert bars(bins) == text


def test_bars_of_all_bins() -> None:
    assert histogram_text((0, 1, 50, 99, 100)) == "▁▂▅██"
    assert histogram_text((0, 0)) == "▁▁"
    assert histogram_text(()) == ""


@pytest.mark.parametrize(
    ("histograms", "together"),
    [
        ([], None),
        ([Histogram(0, 1, (0, 0))], None),
        ([Histogram(0, 2, (1, 2)), Histogram(0, 2, (3, 0))], Histogram(0, 2, (4, 2))),
        (
            [Histogram(0, 2, (4, 4)), Histogram(2, 4, (2, 2))],
            Histogram(0, 4, (4, 4, 2, 2)),
        ),
        ([Histogram(0, 4, (8,))], Histogram(0, 4, (8,))),
        ([Histogram(0, 4, (8,)), Histogram(0, 4, (0, 0, 1, 0))], Histogram(0, 4, (2, 2, 3, 2))),
        ([Histogram(0, 4, (8,)), Histogram(1, 1, (3,))], Histogram(0, 4, (2, 5, 2, 2))),
        ([Histogram(5, 5, (2,)), Histogram(5, 5, (1,))], Histogram(5, 5, (3,))),
    ],
)
def test_several_as_one(histograms: list[Histogram], together: Histogram | None) -> None:
    assert merged(histograms, 4) == together


numbers = st.floats(-1e308, 1e308)
histograms = st.builds(
    lambda one, other, bins: Histogram(min(one, other), max(one, other), tuple(bins)),
    numbers,
    numbers,
    st.lists(st.integers(0, 1000), min_size=1, max_size=16),
)


@given(st.lists(histograms, max_size=5))
def test_nothing_gets_lost(several: list[Histogram]) -> None:
    together = merged(several)
    counted = sum(sum(each.bins) for each in several)
    assert (together is None) == (counted == 0)
    if together is not None:
        assert sum(together.bins) == pytest.approx(counted, rel=1e-3, abs=0.1)
        assert all(count >= 0 for count in together.bins)
