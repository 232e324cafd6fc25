"""What fails is recorded with its inputs, and the exception is the program's own, untouched."""

from __future__ import annotations

import contextlib
import sys
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

import shapetrace
from tests.python.unit.recorder.corpus_of_failures import FAILING, NET
from tests.support.documents import BACKEND
from tests.support.recorder import LEVELS, Harmless, Program, Traced, outline, trace_of, unindented


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("text", FAILING.values(), ids=FAILING.keys())
def test_traceback_is_that_of_an_untraced_run(text: str, level: str, harmless: Harmless) -> None:
    harmless(NET + text, level=level, may_fail=True)


def test_op_that_raises_is_recorded_with_its_inputs_and_every_module_it_went_through(
    harmless: Harmless,
) -> None:
    trace = harmless(NET + "def main(): return net(x)", may_fail=True)
    assert outline(trace) == unindented(
        """
        root: Net(f32[2,4]) -> !RuntimeError
          first: Linear(f32[2,4]) -> f32[2,3]
            linear() (f32[2,4], f32[3,4], f32[3]) -> f32[2,3] inside
          rest: Sequential(f32[2,3]) -> !RuntimeError
            rest.0: ReLU(f32[2,3]) -> f32[2,3]
              relu() (f32[2,3]) -> f32[2,3] inside
            rest.1: Linear(f32[2,3]) -> !RuntimeError
              linear() (f32[2,3], f32[2,5], f32[2]) -> !RuntimeError inside
        """
    )
    errors = [*(op.error for op in trace.ops), *(call.error for call in trace.modules)]
    messages = {error.message for error in errors if error}
    assert messages == {"mat1 and mat2 shapes cannot be multiplied (2x3 and 5x2)"}


def test_kernel_that_raises_is_recorded_under_its_op(harmless: Harmless) -> None:
    trace = harmless(NET + "def main(): return x @ x", level="aten", may_fail=True)
    assert outline(trace) == unindented(
        """
        @ (f32[2,4], f32[2,4]) -> !RuntimeError
          mm() (f32[2,4], f32[2,4]) -> !RuntimeError
        """
    )


def test_call_that_fails_and_later_succeeds_is_two_records(traced: Traced) -> None:
    trace = traced(
        """
        sizes = iter([(3, 3), (4, 2), (9, 9), (4, 2)])

        def main():
            x = torch.ones(2, 4)
            for _ in range(4):
                try:
                    x.view(next(sizes))
                except RuntimeError:
                    pass
        """
    )
    assert outline(trace) == unindented(
        """
        ones(2, 4) () -> f32[2,4]
        view((3, 3)) (f32[2,4]) -> !RuntimeError
        view((4, 2)) (f32[2,4]) -> f32[4,2] ×2
        view((9, 9)) (f32[2,4]) -> !RuntimeError
        """
    )


class Unlucky(nn.Module):
    def forward(self, error: BaseException) -> None:
        raise error


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, GeneratorExit, StopIteration])
def test_exception_is_the_same_object(kind: type[BaseException]) -> None:
    error, cause = kind("own"), KeyError("cause")
    error.__cause__ = cause
    with shapetrace.trace(), pytest.raises(kind) as caught:
        nn.Sequential(Unlucky())(error)
    assert caught.value is error
    assert error.__cause__ is cause
    assert error.__context__ is None
    assert error.args == ("own",)


def test_exception_that_leaves_the_recording_shows_nothing_of_ours() -> None:
    def fail() -> None:
        functional.pad(torch.ones(2, 3), (9, 9), mode="reflect")

    with pytest.raises((RuntimeError, NotImplementedError)) as plain:
        fail()
    with pytest.raises((RuntimeError, NotImplementedError)) as seen, shapetrace.trace():
        fail()
    assert formatted(seen.value) == formatted(plain.value)


BEHIND_A_FUNCTION = """
import traceback

def main():
    try:
        F.pad(x, (9, 9), mode="reflect")
    except Exception:
        return traceback.format_exc()
"""


def test_error_caught_right_behind_a_python_function_shows_torchs_hand_over_and_nothing_of_ours(
    tmp_path: Path,
) -> None:
    program = Program.write(NET + BEHIND_A_FUNCTION, tmp_path)
    plain, seen = program.run().result, program.run(shapetrace.trace()).result
    added = set(str(seen).splitlines()) - set(str(plain).splitlines())
    places = [line.split(", in ")[1] for line in added if ", in " in line]
    assert sorted(places) == ["handle_torch_function", "pad"]
    assert "shapetrace/recorder" not in str(seen)


def formatted(error: BaseException) -> list[str]:
    """The traceback below the frame that caught the exception."""
    assert error.__traceback__ is not None
    return traceback.format_tb(error.__traceback__.tb_next)


def test_message_of_an_exception_never_prints_a_tensor(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise AssertionError("a tensor was printed")

    monkeypatch.setattr(torch._tensor_str, "_str", refuse)

    def fail() -> None:
        with contextlib.suppress(ValueError):
            Unlucky()(ValueError("bad values", torch.ones(3)))

    call = trace_of(fail).modules[0]
    assert call.error is not None
    assert call.error.message == "bad values, <Tensor of shape (3,)>"


def test_exception_whose_text_cannot_be_had_is_recorded_by_its_class() -> None:
    class Silent(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    def fail() -> None:
        with pytest.raises(Silent):
            Unlucky()(Silent())

    call = trace_of(fail).modules[0]
    assert call.error is not None
    assert (call.error.type, call.error.message) == ("Silent", "")


def test_endless_recursion_ends_as_it_does_without_us() -> None:
    class Endless(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.as_tensor(self(x * 2))

    limit = sys.getrecursionlimit()
    with shapetrace.trace() as recording:
        with pytest.raises(RecursionError) as caught:
            Endless()(torch.ones(1))
        nn.Linear(1, 1)(torch.ones(1))
    assert caught.value.__context__ is None
    assert str(BACKEND) not in "".join(traceback.format_exception(caught.value))
    assert sys.getrecursionlimit() == limit
    assert recording.modules[-1].class_name == "Linear"
    assert recording.modules[-1].parent is None


def fail() -> None:
    functional.cross_entropy(torch.zeros(1, 2), torch.tensor([5]))


def test_whoever_shows_the_last_error_is_there_again_after_the_recording() -> None:
    original = sys.excepthook
    with shapetrace.trace():
        with pytest.raises(IndexError):
            fail()
        assert sys.excepthook is not original
        with pytest.raises(IndexError):
            fail()
    assert sys.excepthook is original


def test_what_a_program_puts_there_meanwhile_stays() -> None:
    shown: list[list[str]] = []

    def show(kind: object, error: BaseException, tb: TracebackType | None) -> None:
        shown.append([entry.name for entry in traceback.extract_tb(tb)])

    original = sys.excepthook
    with shapetrace.trace():
        with pytest.raises(IndexError) as caught:
            fail()
        ours = sys.excepthook
        sys.excepthook = show
    assert sys.excepthook is show
    with shapetrace.trace():
        with pytest.raises(IndexError) as caught:
            fail()
        sys.excepthook(IndexError, caught.value, caught.value.__traceback__)
        assert sys.excepthook is show
    assert [name for name in shown[0] if "torch_function" in name] == []
    assert shown[0][-2:] == ["fail", "cross_entropy"]
    ours(IndexError, caught.value, None)  # which somebody may have kept
    assert sys.excepthook is show
    sys.excepthook = original


def test_a_hook_of_the_program_that_calls_the_one_before_reaches_that() -> None:
    called: list[str] = []
    original = sys.excepthook
    sys.excepthook = lambda *arguments: called.append("first")
    with shapetrace.trace():
        with pytest.raises(IndexError):
            fail()
        before = sys.excepthook

        def own(*arguments: Any) -> None:
            called.append("own")
            before(*arguments)

        sys.excepthook = own
        with pytest.raises(IndexError) as caught:
            fail()
        sys.excepthook(IndexError, caught.value, caught.value.__traceback__)
    sys.excepthook = original
    assert called == ["own", "first"]
