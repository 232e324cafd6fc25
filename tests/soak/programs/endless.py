"""Trains until it is ended, or for ``seconds=N`` after its first steps."""

import sys
import time

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.second = nn.Linear(8, 4)

    def forward(self, x):
        h = self.first(x).relu()
        return self.second(h)


torch.manual_seed(0)
given = [float(it.removeprefix("seconds=")) for it in sys.argv[1:] if it.startswith("seconds=")]
end = None
model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
step = 0
while end is None or time.monotonic() < end:
    loss = model(torch.randn(3, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    step += 1
    if step == 20:
        print("ready", flush=True)
        end = time.monotonic() + given[0] if given else None
