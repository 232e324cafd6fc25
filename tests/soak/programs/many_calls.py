"""Makes so many torch calls at some forty places, and prints how its memory has grown."""

import gc
import json
import sys

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(4))

    def forward(self, x, scale):
        h = x
        for layer in self.layers:
            h = layer(h).relu()
            h = h * scale + x
            h = h[:, :4].contiguous()
        return h.mean(0).clamp(-1, 1)


def resident():
    gc.collect()
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024


wanted = int(sys.argv[1])
model = Model()
done, before = 0, None
with torch.no_grad():
    while done < wanted:
        # Sizes change all the time, as they do where text is read.
        model(torch.ones(1 + done // 27 % 13, 4), 0.5)
        done += 27
        if before is None and done >= wanted / 10:
            before = resident()
print(json.dumps({"calls": done, "grown": resident() - before}))
