"""The names that TensorTracer's documents use: a model in training, alone or under torchrun."""

from __future__ import annotations

import os

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

rank, world_size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
device_id = torch.device("cpu")


class Classifier(nn.Module):
    """A model with an input ``x`` of shape (B, C) and an output of the same."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(3, 8)
        self.out = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.hidden(x).relu()
        return self.out(hidden)


torch.manual_seed(0)
model = Classifier()
ddp_model: nn.Module = model
if "RANK" in os.environ and "NO_GROUP" not in os.environ:
    torch.distributed.init_process_group("gloo")
    ddp_model = DistributedDataParallel(model)
dataset = TensorDataset(torch.arange(96.0).reshape(32, 3), torch.zeros(32))
sampler: DistributedSampler = DistributedSampler(dataset, world_size, rank, shuffle=False)
dataloader = DataLoader(dataset, batch_size=4, sampler=sampler)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
loss_fn = nn.CrossEntropyLoss()
