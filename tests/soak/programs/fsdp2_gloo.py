"""FSDP2 (fully_shard) on gloo: two ranks, sharded parameters, gathered state. For torchrun."""

import torch
import torch.distributed as dist
from state import digest, exact, report
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 4))
mesh = init_device_mesh("cpu", (2,))
for layer in model:
    if isinstance(layer, nn.Linear):
        fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
torch.manual_seed(10 + rank)
losses = []
for _ in range(4):
    loss = model(torch.randn(6, 8)).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(exact(loss.item()))
whole = get_model_state_dict(
    model, options=StateDictOptions(full_state_dict=True, cpu_offload=True)
)
with open(f"rank{rank}.txt", "w") as file:
    file.write(f"{losses} {digest(whole.values()) if rank == 0 else ''}")
if rank == 0:
    report(None, losses=losses, whole=digest(whole.values()))
dist.destroy_process_group()
