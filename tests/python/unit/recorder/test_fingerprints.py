"""Fingerprints in a recording: of which calls, how many, and what they tell apart."""

from __future__ import annotations

import contextlib
import copy
import json
import math
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import shapetrace
from shapetrace.events import codec
from shapetrace.events import model as model_of_events
from shapetrace.events.fingerprint import CallFingerprints, Fingerprint, agree, distance
from shapetrace.events.model import ModuleCall, Op, Trace
from shapetrace.recorder.values import fingerprints as all_fingerprints
from shapetrace.recorder.values.keeping import FEWEST_CALLS, MOST_CALLS
from shapetrace.recorder.values.looking_state import is_on_its_way
from tests.support.recorder import Harmless, faults_of, trace_of

BACKEND = Path(__file__).parents[4] / "python_backend"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(BACKEND)}


class Block(nn.Module):
    """A layer with most of what models do."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(32)
        self.up = nn.Linear(32, 64)
        self.down = nn.Linear(64, 32)

    def forward(self, hidden: Tensor) -> Tensor:
        """Residual."""
        inner = functional.gelu(self.up(self.norm(hidden)))
        weights = (inner @ inner.transpose(1, 2) / 8).softmax(-1)
        return hidden + self.down(weights @ inner)


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(*[Block() for _ in range(4)])


def data() -> Tensor:
    return torch.randn(2, 24, 32, generator=torch.Generator().manual_seed(1))


def looked_at(function: Callable[[], object], **options: Any) -> Trace:
    return trace_of(function, fingerprint=True, **options)


def calls_of(trace: Trace) -> list[ModuleCall | Op]:
    return sorted([*trace.modules, *trace.ops], key=lambda call: call.id)


def prints_of(trace: Trace) -> list[tuple[CallFingerprints, ...]]:
    return [call.fingerprints for call in calls_of(trace)]


def only(trace: Trace, name: str) -> Op:
    (found,) = [op for op in trace.ops if op.name.endswith(name)]
    return found


def outputs_of(call: ModuleCall | Op) -> list[Fingerprint]:
    return [output for each in call.fingerprints for output in each.outputs]


def first_difference(one: Trace, other: Trace) -> Op | None:
    """The first op whose values do not agree."""
    for call, another in zip(one.ops, other.ops, strict=True):
        pairs = zip(outputs_of(call), outputs_of(another), strict=True)
        if not all(agree(*pair) for pair in pairs):
            return call
    return None


def test_every_call_has_one_and_equal_runs_have_equal_ones() -> None:
    network, given = model(), data()
    again, given_again = copy.deepcopy(network), given.clone()
    one = looked_at(lambda: network(given))
    other = looked_at(lambda: again(given_again))
    assert prints_of(one) == prints_of(other)
    for call in calls_of(one):
        (prints,) = call.fingerprints
        assert (prints.first, prints.last, prints.digest) == (1, 1, None)
        assert len(prints.outputs) == 1
        assert len(prints.inputs) == (1 if isinstance(call, ModuleCall) and not call.path else 0)
    root = one.modules[0].fingerprints[0]
    assert root.inputs[0].mean == pytest.approx(given.double().mean().item(), rel=1e-6)
    assert root.outputs[0].mean == pytest.approx(network(given).double().mean().item(), rel=1e-6)


def test_one_weight_that_is_another_is_noticed_where_it_is_used() -> None:
    network, given = model(), data()
    before = looked_at(lambda: network(given))
    with torch.no_grad():
        network.get_parameter("2.up.weight")[5, 7] += 0.05
    after = looked_at(lambda: network(given))
    found = first_difference(before, after)
    assert found is not None
    assert found.name == "torch.nn.functional.linear"
    modules = {call.id: call for call in before.modules}
    assert found.module is not None
    assert modules[found.module].path == "2.up"
    assert before.modules[0].fingerprints[0].inputs == after.modules[0].fingerprints[0].inputs


def test_other_inputs_are_told_from_other_computing() -> None:
    network, given = model(), data()
    before = looked_at(lambda: network(given))
    after = looked_at(lambda: network(given + 0.01))
    ours, theirs = (trace.modules[0].fingerprints[0].inputs[0] for trace in (before, after))
    assert not agree(ours, theirs)


def test_another_precision_agrees_and_an_error_does_not() -> None:
    network, given = model(), data()
    exact = looked_at(lambda: network(given))
    coarse_network, coarse_given = copy.deepcopy(network).bfloat16(), given.bfloat16()
    coarse = looked_at(lambda: coarse_network(coarse_given))
    assert first_difference(exact, coarse) is None
    with torch.no_grad():
        coarse_network.get_parameter("1.norm.weight").mul_(1.25)
    found = first_difference(exact, looked_at(lambda: coarse_network(coarse_given)))
    assert found is not None
    assert found.name == "torch.nn.functional.layer_norm"
    fine_network, fine_given = copy.deepcopy(network).double(), given.double()
    fine = looked_at(lambda: fine_network(fine_given))
    assert first_difference(exact, fine) is None


def test_what_a_call_returned_is_what_it_held_then() -> None:
    def run() -> None:
        base = torch.ones(4)
        view = base.view(2, 2)
        base.add_(1)
        view.mul_(3)
        torch.mul(base, 0, out=view.view(4))

    trace = looked_at(run)
    means = {op.name: outputs_of(op)[0].mean for op in trace.ops if op.name != "torch.Tensor.view"}
    assert means == {
        "torch.ones": 1.0,
        "torch.Tensor.add_": 2.0,
        "torch.Tensor.mul_": 6.0,
        "torch.mul": 0.0,
    }
    assert outputs_of(trace.ops[1])[0].mean == 1.0


def test_memory_that_nobody_has_written_to_means_nothing() -> None:
    trace = looked_at(lambda: [torch.empty(3), torch.empty_like(torch.ones(2)), torch.zeros(1)])
    notes = [each.note for op in trace.ops for each in outputs_of(op)]
    assert notes == ["not set to anything yet", None, "not set to anything yet", None]


def test_a_copy_that_nobody_has_waited_for_is_not_read() -> None:
    here, there = torch.ones(2), torch.ones(2, device="meta")
    assert is_on_its_way((there, "cpu"), {"non_blocking": True})
    assert is_on_its_way((there, torch.device("cpu"), torch.float32, True), {})
    assert is_on_its_way((there,), {"device": "cpu", "non_blocking": True})
    assert is_on_its_way((here, there, True), {})
    assert not is_on_its_way((there, "cpu"), {})
    assert not is_on_its_way((there, "cuda"), {"non_blocking": True})
    assert not is_on_its_way((here, "cpu"), {"non_blocking": True})
    assert not is_on_its_way((there, here, True), {})
    trace = looked_at(lambda: here.to("cpu", torch.float64, non_blocking=True))
    assert outputs_of(only(trace, "to"))[0].note is None


def test_several_outputs_are_told_from_left_to_right() -> None:
    trace = looked_at(lambda: torch.tensor([[1.0, 5.0], [7.0, 2.0]]).max(1))
    values, indices = outputs_of(only(trace, "max"))
    assert (values.samples, indices.samples) == ((5.0, 7.0), (1, 0))
    assert indices.checksum is not None
    trace = looked_at(lambda: torch.ones(3).sum().item())
    assert only(trace, "item").fingerprints == ()


def test_outputs_of_modules_are_told_as_they_are_described() -> None:
    class Odd(nn.Module):
        def forward(self, scale: int, *, table: dict[str, Any]) -> object:
            deep = [[[[[table["x"]]]]]]
            return {"a": table["x"] * scale, "b": [None, (table["x"],), 3], "c": deep}

    odd = Odd()
    trace = looked_at(lambda: odd(2, table={"n": 1, "x": torch.ones(2)}))
    (call,) = trace.modules
    (prints,) = call.fingerprints
    assert [each.mean for each in prints.outputs] == [2.0, 1.0]
    assert [each.mean for each in prints.inputs] == [1.0]


@pytest.mark.slow
def test_one_call_of_many_that_differs_is_noticed() -> None:
    def run(odd_one: int) -> Trace:
        def steps() -> None:
            value = torch.arange(100.0)
            for number in range(200):
                torch.cos(value * (1.001 if number + 1 == odd_one else 1.0))

        return looked_at(steps)

    usual = only(run(0), "cos").fingerprints
    assert [(each.first, each.last) for each in usual[:MOST_CALLS]] == [
        (number, number) for number in range(1, MOST_CALLS + 1)
    ]
    assert [(each.first, each.last) for each in usual[MOST_CALLS:]] == [(65, 128), (129, 200)]
    assert sum(each.outputs[0].count for each in usual) == 200 * 100
    for odd_one, position in ((17, 16), (64, 63), (65, 64), (100, 64), (200, 65)):
        found = only(run(odd_one), "cos").fingerprints
        differing = [number for number, each in enumerate(found) if each != usual[number]]
        assert differing == [position]
        assert not agree(found[position].outputs[0], usual[position].outputs[0])


def test_two_calls_that_change_places_are_noticed() -> None:
    def run(order: list[int]) -> CallFingerprints:
        def steps() -> None:
            for number in [*range(64), *order]:
                torch.cos(torch.full((3,), float(number)))

        return only(looked_at(steps), "cos").fingerprints[-1]

    usual, swapped = run([64, 65, 66]), run([64, 66, 65])
    assert usual.digest != swapped.digest
    assert distance(usual.outputs[0], swapped.outputs[0]).verdict == "rearranged"
    assert usual == run([64, 65, 66])


@pytest.mark.slow
def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = all_fingerprints.Fingerprints()
    for number in range(20_000):
        kept.add(1, kept.look(torch.full((), number)), [])
    kept.sort()
    rows = kept.rows_of(1, 20_000)
    assert len(rows) == MOST_CALLS + math.ceil(math.log2(20_000 / MOST_CALLS))
    assert [row[0] for row in rows[1:]] == [row[1] + 1 for row in rows[:-1]]
    assert rows[-1][1] == 20_000
    monkeypatch.setattr(all_fingerprints, "MOST_KEPT", 1000)
    kept = all_fingerprints.Fingerprints()
    for number in range(40_000):
        kept.add(number % 400, kept.look(torch.ones(2)), [])
    kept.sort()
    lengths = [sum(row[4] is None for row in kept.rows_of(each, 100)) for each in range(400)]
    assert sum(lengths) <= 1000 + 400 * FEWEST_CALLS
    assert min(lengths) >= FEWEST_CALLS
    assert all(kept.rows_of(each, 100)[-1][1] == 100 for each in range(400))


def test_kernels_have_theirs_in_backward_passes_too() -> None:
    network, given = model(), data()

    def run() -> None:
        for _ in range(3):
            network(given).square().sum().backward()
        for least in (1, 2, 3):
            torch.nonzero(torch.arange(4) >= least)
        for width in (2, 3):
            with contextlib.suppress(RuntimeError):
                torch.ones(2, 3) @ torch.ones(width, 3)

    trace = looked_at(run, level="aten")
    kernels = [op for op in trace.ops if op.level == "aten"]
    for op in kernels:
        counted = sum(each.last - each.first + 1 for each in op.fingerprints)
        assert counted == (op.count if op.error is None and holds_tensor(op) else 0), op
    parents = {op.id: op for op in trace.ops}
    for op in kernels:
        parent = None if op.parent is None else parents[op.parent]
        if op.name == "aten.nonzero":
            assert parent is not None
            assert op.fingerprints == parent.fingerprints
    gradients = [op for op in kernels if op.name == "aten.native_layer_norm_backward"]
    assert sum(op.count for op in gradients) == 4 * 3
    # The data that the first layer got needs no gradient.
    numbers = {len(call.outputs) for op in gradients for call in op.fingerprints}
    assert numbers == {2, 3}


def holds_tensor(op: Op) -> bool:
    return any(isinstance(each, model_of_events.Tensor) for each in op.outputs)


def test_sizes_that_change_are_compared_call_by_call() -> None:
    def run() -> None:
        for size in range(1, 40):
            torch.ones(size).cumsum(0)

    trace = looked_at(run)
    counts = [output.count for op in trace.ops for output in outputs_of(op) if "cumsum" in op.name]
    assert sorted(counts) == list(range(1, 40))


def test_a_call_that_raises_has_none_and_leaves_the_others_theirs() -> None:
    class Fails(nn.Module):
        def forward(self, given: Tensor, fails: bool) -> Tensor:
            return given @ torch.ones(3, 2) if fails else given * 2

    fails = Fails()

    def run() -> None:
        for number in range(4):
            try:
                fails(torch.full((2, 2), float(number)), number == 1)
            except RuntimeError:
                pass

    trace = looked_at(run)
    by_inputs = {call.inputs[-1]: call.fingerprints for call in trace.modules}
    assert len(by_inputs) == 2
    passed, failed = by_inputs.values()
    assert [each.inputs[0].mean for each in (*passed, *failed)] == [0.0, 2.0, 3.0, 1.0]
    assert [each.outputs[0].mean for each in passed] == [0.0, 4.0, 6.0]
    assert failed[0].outputs == ()
    assert all(op.fingerprints == () for op in trace.ops if op.error is not None)


def test_only_the_passes_that_are_recorded_count() -> None:
    network, given = model(), data()

    def run() -> None:
        for _ in range(3):
            network(given)

    trace = looked_at(run, passes=2)
    assert [len(call.fingerprints) for call in trace.modules] == [2] * len(trace.modules)
    assert all(len(op.fingerprints) == op.count for op in trace.ops)


def test_other_threads_have_theirs() -> None:
    network, given = model(), data()
    alone = looked_at(lambda: network(given))

    def run() -> None:
        threads = [threading.Thread(target=network, args=(given,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    trace = looked_at(run)
    ours = {output for op in alone.ops for output in outputs_of(op)}
    assert {output for op in trace.ops for output in outputs_of(op)} == ours
    counted = sum(each.last - each.first + 1 for op in trace.ops for each in op.fingerprints)
    assert counted == 3 * len(alone.ops)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_that_was_forked_does_not_wait_for_threads_it_lacks() -> None:
    program = """
import os, sys, torch, shapetrace
from shapetrace.events.fingerprint import distance
torch.set_num_threads(3)
big = torch.randn(3000, 100)
half, mask = big.half(), big > 0
(big * 2).sum()

def prints():
    with shapetrace.trace(fingerprint=True) as trace:
        for each in (big, half, mask):
            each.view(-1), each.t()
    return [op.fingerprints for op in trace.ops]

mine = prints()
child = os.fork()
if child == 0:
    theirs = prints()
    apart = [distance(a[0].outputs[0], b[0].outputs[0]) for a, b in zip(mine, theirs)]
    print([each.verdict for each in apart], max(each.relative for each in apart) < 1e-7, flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env=ENVIRONMENT,
    )
    verdicts = ["equal", "close", "equal", "close", "equal", "equal"]
    assert done.stdout == f"{verdicts} True\n", done.stderr


@pytest.mark.parametrize("level", ["torch", "aten"])
def test_a_program_notices_nothing(harmless: Harmless, level: str) -> None:
    trace = harmless(
        """
        def main():
            layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
            value = torch.randn(2, 5, 16)
            with torch.autocast("cpu", torch.bfloat16):
                out = layer(value)
            loss = F.mse_loss(out.float(), torch.randn_like(value))
            loss.backward()
            optimizer = torch.optim.AdamW(layer.parameters())
            optimizer.step()
            layer.eval()
            with torch.inference_mode():
                again = layer(value)
            with torch.no_grad():
                mapped = torch.vmap(lambda row: row.sin().sum())(value)
            value.add_(1)[0, 0] = 7
            hooked = torch.ones(3, requires_grad=True)
            seen = []
            hooked.register_hook(seen.append)
            torch.func.grad(lambda it: (it * hooked.detach()).sum())(torch.ones(3))
            (hooked * 2).sum().backward()
            versions = [value._version, out._version, hooked._version]
            saved = [each.grad for each in layer.parameters()]
            return out, again, mapped, saved, versions, value, seen, F.dropout(value)
        """,
        level=level,
        fingerprint=True,
    )
    assert all(call.fingerprints for call in trace.modules)
    assert any(each.note for op in trace.ops for each in outputs_of(op))


def test_checkpoints_and_graphs(harmless: Harmless) -> None:
    trace = harmless(
        """
        from torch.utils.checkpoint import checkpoint
        from torch.fx.experimental.proxy_tensor import make_fx

        def main():
            layer = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Dropout(0.5))
            value = torch.randn(3, 4, requires_grad=True)
            checkpoint(layer, value, use_reentrant=False).sum().backward()
            graph = make_fx(lambda it: (it * 2).relu())(torch.ones(2))
            fake = make_fx(lambda it: it.cos(), tracing_mode="fake")(torch.ones(2))
            exported = torch.export.export(nn.Linear(2, 3), (torch.ones(1, 2),))
            codes = [graph.code, fake.code, str(exported.graph)]
            return value.grad, codes
        """,
        fingerprint=True,
    )
    assert trace.modules


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_a_graph_that_jit_traces_is_the_same() -> None:
    layer, given = nn.Linear(2, 3), torch.ones(1, 2)
    plain = str(torch.jit.trace(layer, (given,)).graph)
    trace = shapetrace.trace(fingerprint=True)
    with trace:
        traced = torch.jit.trace(layer, (given,))
    assert str(traced.graph).count("aten::") == plain.count("aten::")
    assert not faults_of(trace.trace)


@pytest.mark.slow
def test_without_being_asked_for_nothing_is_there(tmp_path: Any) -> None:
    program = """
import sys, torch, shapetrace
with shapetrace.trace() as trace:
    torch.ones(2).add(1)
trace.save(sys.argv[1])
print([name for name in sys.modules if name.startswith("shapetrace.recorder.values")])
"""
    path = tmp_path / "trace.json"
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        capture_output=True,
        text=True,
        check=True,
        env=ENVIRONMENT,
    )
    assert done.stdout == "[]\n"
    assert "fingerprint" not in path.read_text("utf-8")


def test_they_survive_in_a_file(tmp_path: Any) -> None:
    trace = looked_at(lambda: torch.tensor([math.nan, math.inf, -math.inf, 1.0, 2.5]).relu())
    path = tmp_path / "trace.json"
    codec.save(trace, path)
    assert codec.load(path) == trace
    (op, relu) = json.loads(path.read_text("utf-8"))["ops"]
    assert op["fingerprints"][0]["outputs"][0]["samples"] == ["nan", "inf", "-inf", 1.0, 2.5]
    assert relu["fingerprints"][0]["outputs"][0]["nan"] == 1


def test_a_fault_of_ours_is_not_the_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Any:
        raise ValueError("broken")

    monkeypatch.setattr(all_fingerprints, "tensors_in", broken)
    with shapetrace.trace(fingerprint=True) as trace:
        result = nn.Linear(2, 3)(torch.ones(1, 2))
    assert result.shape == (1, 3)
    assert [op.name for op in trace.ops][-1] == "torch.nn.functional.linear"
    assert [call.outputs != () for call in trace.modules] == [True]
    assert set(faults_of(trace.trace)) == {"ValueError: broken"}
