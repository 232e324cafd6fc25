"""Training loops: what differs in a later round comes after what differs in the first."""

from __future__ import annotations

import dataclasses

import pytest

from shapetrace.comparing.compare import compare
from shapetrace.events.fingerprint import CallFingerprints, Fingerprint
from shapetrace.events.model import Frame, ModuleCall, Op, Tensor, Trace
from tests.support.runs import made_run

ROUNDS = 6
MODEL, LINEAR, STATE, GRAD, ADD, REPORT = 1, 2, 3, 4, 5, 6
LINES = {MODEL: 10, LINEAR: 50, STATE: 12, GRAD: 12, ADD: 12, REPORT: 20}


def values(count: int, begin: int | None) -> tuple[CallFingerprints, ...]:
    """What so many calls gave; from one of them on, something else."""
    prints = []
    for number in range(1, count + 1):
        value = 2.0 if begin is not None and number >= begin else 1.0
        output = Fingerprint("float32", 4, value, value, value, value, (value,) * 4)
        prints.append(CallFingerprints(number, number, (output,)))
    return tuple(prints)


def op(number: int, name: str, count: int, begin: int | None, label: str = "") -> Op:
    """A call in the loop; the linear layer is the model's."""
    tensor = Tensor((4,), "float32", "cpu")
    return Op(
        id=number,
        module=MODEL if number == LINEAR else None,
        name=f"torch.{name}",
        label=label or name,
        form="call",
        direct=False,
        result=None,
        file="/home/ada/train.py",
        line=LINES[number],
        column=0,
        end_line=LINES[number],
        end_column=9,
        function="main",
        stack=(number,),
        inputs=(tensor,),
        outputs=(tensor,),
        count=count,
        fingerprints=values(count, begin),
    )


def training(
    begins: dict[int, int] | None = None, epsilon: str = "1e-08", steps: int = ROUNDS
) -> Trace:
    """A loop in which the first step of the optimizer makes its state.

    Args:
        begins: for calls, the first number whose values are other ones.
        epsilon: what the optimizer adds.
        steps: how many it makes: fewer than there are rounds where gradients are accumulated.

    """
    since = begins or {}
    tensor = Tensor((4,), "float32", "cpu")
    model = ModuleCall(
        id=MODEL,
        parent=None,
        path="",
        class_name="Net",
        detail="",
        call=1,
        input_names=("x",),
        result=None,
        file="/home/ada/train.py",
        line=LINES[MODEL],
        column=0,
        end_line=LINES[MODEL],
        end_column=9,
        function="main",
        stack=(MODEL,),
        inputs=(tensor,),
        outputs=(tensor,),
        count=ROUNDS,
    )
    ops = (
        op(LINEAR, "linear", ROUNDS, since.get(LINEAR)),
        op(STATE, "zeros_like", 1, None),
        op(GRAD, "grad", steps, since.get(GRAD)),
        op(ADD, "add_", steps, since.get(ADD), f"add_({epsilon})"),
        op(REPORT, "mean", 1, since.get(REPORT)),
    )
    frames = tuple(Frame(at, "/home/ada/train.py", line, "main") for at, line in LINES.items())
    return Trace(made_run(passes=ROUNDS), (model,), ops, frames)


def names(good: Trace, bad: Trace) -> list[str]:
    """Which ops differ, in the order in which that is said."""
    differences = compare(good, bad).differences
    return [item.a.name.removeprefix("torch.") for item in differences if isinstance(item.a, Op)]


def test_a_gradient_of_round_two_comes_before_the_model_of_round_three() -> None:
    bad = training({LINEAR: 3, GRAD: 2, ADD: 2, REPORT: 1})
    assert names(training(), bad) == ["grad", "add_", "linear", "mean"]
    assert names(bad, training()) == ["grad", "add_", "linear", "mean"]


def test_other_arguments_of_the_optimizer_come_before_what_they_make_of_the_model() -> None:
    bad = training({LINEAR: 2, GRAD: 2, ADD: 1}, epsilon="0.0001")
    assert names(training(), bad)[0] == "add_"


def test_steps_that_are_made_every_other_round_are_in_the_loop() -> None:
    good = training(steps=ROUNDS // 2)
    bad = training({LINEAR: 3, GRAD: 2, ADD: 1, REPORT: 1}, epsilon="0.1", steps=ROUNDS // 2)
    assert names(good, bad) == ["add_", "linear", "grad", "mean"]


@pytest.mark.parametrize("rounds", [ROUNDS, ROUNDS // 2])
def test_an_evaluation_after_the_loop_is_no_part_of_it(rounds: int) -> None:
    good, bad = training(), training({LINEAR: 3, GRAD: 2})
    traces = []
    for trace, begin in ((good, None), (bad, 1)):
        trained = (Tensor((4,), "float32", "cpu", requires_grad=True),)
        model = dataclasses.replace(trace.modules[0], outputs=trained)
        evaluated = dataclasses.replace(
            trace.modules[0], id=7, line=30, end_line=30, stack=(7,), count=rounds
        )
        inside = dataclasses.replace(
            op(LINEAR, "tanh", rounds, begin), id=8, module=7, line=31, stack=(8,)
        )
        traces.append(
            dataclasses.replace(trace, modules=(model, evaluated), ops=(*trace.ops, inside))
        )
    assert names(*traces) == ["grad", "linear", "tanh"]
