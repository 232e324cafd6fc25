"""Gradients: backward passes, functions of the program's own, checkpoints, transforms."""

from __future__ import annotations

import pytest

from tests.python.unit.recorder.corpus_of_gradients import PROGRAMS
from tests.support.recorder import LEVELS, Harmless, Traced, names_of, outline, unindented
from tests.support.torches import TORCH


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_results_are_the_same(text: str, level: str, harmless: Harmless) -> None:
    harmless(text, level=level)


def test_program_in_a_backward_pass_is_recorded(harmless: Harmless) -> None:
    trace = harmless(
        """
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                return grad.flip(0) * 2

        x = torch.ones(2, 3, requires_grad=True)

        def main():
            y = Double.apply(x)
            y.register_hook(lambda grad: grad.neg())
            y.sum().backward()
            return torch.autograd.grad(Double.apply(x).sum(), x)
        """
    )
    assert outline(trace) == unindented(
        """
        * (f32[2,3]) -> f32[2,3]
        register_hook(<lambda>) (f32[2,3]) -> RemovableHandle
        sum() (f32[2,3]) -> f32[]
        backward() (f32[]) -> None
        neg() (f32[2,3]) -> f32[2,3]
        flip(0) (f32[2,3]) -> f32[2,3]
        * (f32[2,3]) -> f32[2,3]
        * (f32[2,3]) -> f32[2,3]
        sum() (f32[2,3]) -> f32[]
        grad(allow_unused=False) (f32[], f32[2,3]) -> (f32[2,3],)
        flip(0) (f32[2,3]) -> f32[2,3]
        * (f32[2,3]) -> f32[2,3]
        """
    )
    functions = {op.label: op.function.rsplit(".", 1)[-1] for op in trace.ops}
    assert functions["flip(0)"] == "backward"
    assert functions["neg()"] == "<lambda>"


CHECKPOINTED = """
from torch.utils.checkpoint import checkpoint

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
        self.outer = nn.Linear(3, 1)

    def forward(self, x):
        return self.outer(checkpoint(self.inner, x, use_reentrant=REENTRANT))

net = Net()
x = torch.ones(2, 3, requires_grad=True)

def main():
    for _ in range(2):
        net(x).sum().backward()
    return x.grad
"""


@pytest.mark.parametrize("reentrant", ["True", "False"])
def test_recomputation_is_recorded_and_is_no_error_and_no_pass(
    reentrant: str, harmless: Harmless
) -> None:
    trace = harmless(CHECKPOINTED.replace("REENTRANT", reentrant))
    calls = [(call.path, call.count, call.parent is None) for call in trace.modules]
    assert calls == [
        ("", 2, True),
        ("inner", 2, False),
        ("inner.0", 2, False),
        ("inner.1", 2, False),
        ("outer", 2, False),
        ("inner", 2, True),
        ("inner.0", 2, False),
        ("inner.1", 2, False),
    ]
    assert names_of(trace).count("tanh") == 2
    assert not any(call.error for call in trace.modules)
    assert not any(op.error for op in trace.ops)
    assert trace.run.passes == 2


def test_recording_through_a_step_goes_on_through_a_recomputation(traced: Traced) -> None:
    trace = traced(CHECKPOINTED.replace("REENTRANT", "True"), passes=1)
    assert trace.run.passes == 1
    assert names_of(trace)[-1] == "linear"


def test_backward_kernels_belong_to_the_backward_call(harmless: Harmless) -> None:
    trace = harmless(
        """
        x = torch.ones(2, 3, requires_grad=True)

        def main():
            (x @ x.T).sum().backward()
        """,
        level="aten",
    )
    assert outline(trace) == unindented(
        """
        T (f32[2,3]) -> f32[3,2]
          permute([1, 0]) (f32[2,3]) -> f32[3,2]
        @ (f32[2,3], f32[3,2]) -> f32[2,2]
          mm() (f32[2,3], f32[3,2]) -> f32[2,2]
        sum() (f32[2,2]) -> f32[]
          sum() (f32[2,2]) -> f32[]
        backward() (f32[]) -> None
          ones_like(pin_memory=False, memory_format=torch.preserve_format) (f32[]) -> f32[]
          expand([2, 2]) (f32[]) -> f32[2,2]
          t() (f32[2,2]) -> f32[2,2]
          mm() (f32[2,2], f32[2,3]) -> f32[2,3] ×2
          t() (f32[2,3]) -> f32[3,2]
          t() (f32[3,2]) -> f32[2,3]
          permute([1, 0]) (f32[3,2]) -> f32[2,3]
          add.Tensor() (f32[2,3], f32[2,3]) -> f32[2,3]
          detach() (f32[2,3]) -> f32[2,3]%s
        """
        % (" ×2" if TORCH <= (2, 8) else "")
    )
