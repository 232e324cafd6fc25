"""When a recording rests because nothing is new, and what it steps around."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import shapetrace
from shapetrace.recorder.rest import SAMPLE_EVERY
from tests.support.recorder import LEVELS, counts_of, faults_of, paths_of


def test_recording_rests_when_nothing_is_new_and_looks_at_one_pass_in_so_many(
    net: nn.Module, x: torch.Tensor
) -> None:
    passes = 3 * SAMPLE_EVERY
    with shapetrace.trace(settle_after=3) as recording:
        for _ in range(passes):
            net(x)
    looked_at = counts_of(recording)["linear()"]
    assert 5 <= looked_at <= 10
    (note,) = recording.coverage
    assert note.reason == "settled"
    assert note.where.startswith("not looked at since pass ")
    assert note.count == passes - looked_at


def test_resting_recording_leaves_no_modes_on_the_stack(net: nn.Module, x: torch.Tensor) -> None:
    with shapetrace.trace(settle_after=2):
        for _ in range(6):
            net(x)
        assert torch._C._len_torch_function_stack() == 0
        net(torch.ones(3, 4))
        assert torch._C._len_torch_function_stack() == 1


def test_new_inputs_roots_modes_and_wake_end_the_rest(net: nn.Module, x: torch.Tensor) -> None:
    def settle() -> None:
        for _ in range(6):
            net(x)

    with shapetrace.trace(settle_after=2) as recording:
        settle()
        before = counts_of(recording)["linear()"]
        net(torch.ones(5, 4))
        assert counts_of(recording)["linear()"] == before + 1
        settle()
        nn.Tanh()(x)
        settle()
        net.eval()
        net(x)
        net.train()
        settle()
        with torch.no_grad():
            net(x)
        settle()
        before = counts_of(recording)["linear()"]
        net(x)
        assert counts_of(recording)["linear()"] == before
        recording.wake()
        net(x)
        assert counts_of(recording)["linear()"] == before + 1
    assert "tanh()" in counts_of(recording)


@pytest.mark.parametrize("level", LEVELS)
def test_resting_inside_inference_mode_leaves_torch_usable(
    level: str, net: nn.Module, x: torch.Tensor
) -> None:
    with shapetrace.trace(settle_after=2, level=level) as recording:
        for _ in range(3):
            with torch.inference_mode():
                for _ in range(2 * SAMPLE_EVERY):
                    net(x)
            torch.ones(1)
            assert torch._C._len_torch_dispatch_stack() <= 1
    torch.ones(1)
    assert not faults_of(recording.trace)


def test_never_at_rest_by_default(net: nn.Module, x: torch.Tensor) -> None:
    with shapetrace.trace() as recording:
        for _ in range(200):
            net(x)
    assert counts_of(recording)["linear()"] == 200
    assert recording.coverage == ()


def encoder() -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    return nn.TransformerEncoder(layer, 2).eval(), torch.rand(2, 3, 8)


def test_fused_path_is_stepped_around_and_named() -> None:
    net, x = encoder()
    with torch.no_grad():
        plain = net(x)
        with shapetrace.trace() as recording:
            seen = net(x)
    assert torch.equal(seen, plain)
    assert [(call.path, call.note, call.count) for call in recording.modules] == [
        ("", None, 1),
        ("layers.0", "fused fast path", 1),
        ("layers.1", "fused fast path", 1),
    ]
    assert recording.ops == ()
    assert {(each.reason, each.where) for each in recording.coverage} == {
        ("fused fast path", "layers.0"),
        ("fused fast path", "layers.1"),
    }


def test_fused_path_is_opened_on_request() -> None:
    net, x = encoder()
    with torch.no_grad(), shapetrace.trace(expand_fused=True) as recording:
        net(x)
    assert "layers.0.self_attn" in paths_of(recording.trace)
    assert recording.coverage == ()
