"""pytest with pytest-timeout: fixtures, parameters, expected errors, a test that is too slow."""

import pytest
import torch
from torch import nn


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_shape(model, rows):
    assert model(torch.ones(rows, 3)).shape == (rows, 2)


def test_wrong_width(model):
    with pytest.raises(RuntimeError, match=r"mat1 and mat2 shapes cannot be multiplied \(2x4 and"):
        model(torch.ones(2, 4))


def test_fails(model):
    assert model(torch.ones(1, 3)).shape == (1, 3)


@pytest.mark.timeout(1, method="signal")
def test_too_slow(model):
    while True:
        model(torch.ones(1, 3))


def test_after_it(model):
    torch.testing.assert_close(model(torch.ones(1, 3)), model(torch.ones(1, 3)))
