"""Models that are spread over ranks: the paths are those of the model itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.python.e2e.capture.ranks import Outcome, torchrun

pytestmark = pytest.mark.e2e

PROGRAM = """
import json
import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel
from shapetrace import ModelTracer

torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        weight = self.linear.weight
        y = self.linear(x)
        return y.relu()

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(2))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x

PATHS = ["forward", "blocks.*.forward.y", "blocks.0.forward.weight", "blocks.1"]

def trained(model, tracer=None):
    torch.manual_seed(rank)
    outputs = []
    for _ in range(3):
        output = model(torch.randn(2, 4))
        output.sum().backward()
        outputs.append(output.detach())
    return outputs

def local(value):
    return value.to_local() if isinstance(value, DTensor) else value

def wrapped(kind):
    torch.manual_seed(0)
    model = Model()
    if kind == "ddp":
        return DistributedDataParallel(model)
    mesh = init_device_mesh("cpu", (2,))
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)

told = {}
for kind in ("ddp", "fsdp"):
    plain = wrapped(kind)
    expected = trained(plain)
    model = wrapped(kind)
    with ModelTracer(model, PATHS) as tracer:
        outputs = trained(model)
    grads = [local(parameter.grad) for parameter in model.parameters()]
    told[kind] = {
        "same": all(map(torch.equal, outputs, expected)),
        "grads": all(map(torch.equal, grads, [local(each.grad) for each in plain.parameters()])),
        "names": list(tracer.results),
        "ranks": {name: entry.ranks for name, entry in tracer.results.items()},
        "shapes": {name: list(entry.values[0].shape) for name, entry in tracer.results.items()},
        "problems": tracer.problems,
        "counts": tracer.current_training_iteration,
    }
    if rank == 0:
        told[kind]["first"] = torch.equal(tracer.results["forward"].values[0], outputs[0])
with open(f"told{rank}.json", "w") as file:
    json.dump(told, file)
torch.distributed.barrier()
torch.distributed.destroy_process_group()
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict]:
    folder: Path = tmp_path_factory.mktemp("wrapped")
    outcome: Outcome = torchrun(folder, PROGRAM, 2)
    assert outcome.code == 0, outcome.stderr
    return {rank: json.loads((folder / f"told{rank}.json").read_text()) for rank in (0, 1)}


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_a_wrapped_model_is_captured_and_does_what_it_did(told: dict[int, dict], kind: str) -> None:
    for rank in (0, 1):
        assert told[rank][kind]["same"]
        assert told[rank][kind]["grads"]
        assert told[rank][kind]["problems"] == []
        assert told[rank][kind]["counts"] == 3
    assert told[1][kind]["names"] == []
    main = told[0][kind]
    assert main["first"]
    assert set(main["names"]) == {
        *("forward", "blocks.0.forward.y", "blocks.1.forward.y"),
        *("blocks.0.forward.weight", "blocks.1"),
    }
    assert main["ranks"]["forward"] == [0, 1] * 3
    assert main["shapes"]["forward"] == [2, 4]
    # What FSDP has gathered for the forward pass is the whole weight.
    assert main["shapes"]["blocks.0.forward.weight"] in ([4, 4], [2, 4])
