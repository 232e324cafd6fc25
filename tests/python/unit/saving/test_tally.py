"""The figures of captured values that are counted as they come."""

from __future__ import annotations

import pytest
import torch

from shapetrace.saving.tally import Tally


def test_a_histogram_is_of_all_columns_of_a_masked_tensor() -> None:
    scores = torch.arange(256.0).expand(256, 256)
    causal = torch.ones(256, 256).tril().bool()
    masked = scores.masked_fill(~causal, -torch.inf)
    tally = Tally()
    tally("scores", [masked], [1], [0])
    [name] = tally.summary("captured").names
    statistics = name.parts[0].leaves[0].statistics
    assert statistics is not None
    assert statistics.histogram is not None
    counts = statistics.histogram.counts
    finite = scores[causal]
    expected = torch.histc(finite, 16, 0, 255) / finite.numel()
    shares = torch.tensor(counts) / sum(counts)
    assert shares.tolist() == pytest.approx(expected.tolist(), abs=0.1)
