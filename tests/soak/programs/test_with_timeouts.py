"""pytest with pytest-timeout: fixtures, parameters, expected errors, tests that are too slow."""

import time

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


@pytest.fixture(params=[0.1, 0.2, 0.3, 0.5, 0.7])
def seconds(request):
    request.node.add_marker(pytest.mark.timeout(request.param, method="signal", func_only=True))


def test_too_slow(seconds, model):
    # Where in the model the time is up is not the same in any two runs. In a debugger it never is:
    # pytest-timeout notices one, and waits.
    end = time.monotonic() + 4
    try:
        while time.monotonic() < end:
            model(torch.ones(1, 3))
    except BaseException as error:
        raise error.with_traceback(None) from None


def test_after_it(model):
    torch.testing.assert_close(model(torch.ones(1, 3)), model(torch.ones(1, 3)))
