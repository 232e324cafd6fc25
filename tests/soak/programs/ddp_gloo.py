"""DistributedDataParallel on gloo: two ranks, no_sync, a checkpoint by rank 0. For torchrun."""

import os

import torch
import torch.distributed as dist
from state import digest, exact, report
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(1)
model = DistributedDataParallel(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(rank)
losses = []
for step in range(6):
    features = torch.randn(8, 4)
    if step % 2:
        with model.no_sync():
            model(features).pow(2).mean().backward()
        continue
    loss = model(features).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(exact(loss.item()))
gathered = [torch.zeros(8, 4) for _ in range(2)]
dist.all_gather(gathered, features)
if rank == 0:
    torch.save(model.state_dict(), "model.pt")
dist.barrier()
loaded = torch.load("model.pt", weights_only=True)
with open(f"rank{rank}.txt", "w") as file:
    file.write(f"{losses} {digest(loaded.values())} {digest(gathered)}")
if rank == 0:
    report(model, losses=losses)
dist.destroy_process_group()
os.sync()
