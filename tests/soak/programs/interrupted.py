"""Catches each Ctrl-C, says so, and goes on: ``caught NUMBER FRAMES-OF-OURS``. SIGUSR1 ends it."""

import signal
import sys
import traceback

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        h = x
        for layer in self.layers:
            h = layer(h).relu() + nn.functional.pad(h, (0, 0))
        return h


def end(number, frame):
    sys.exit(0)


signal.signal(signal.SIGUSR1, end)
model = Model()
model(torch.ones(2, 4)).sum().backward()
caught = 0
said = "ready"
while True:
    try:
        # In here, as the next one may come before this has returned.
        print(said, flush=True)
        while True:
            model(torch.ones(2, 4)).sum().backward()
            torch.cat([torch.ones(2)] * 3)
    except KeyboardInterrupt as error:
        shown = "".join(traceback.format_exception(error))
        said = f"caught {caught} {int('/shapetrace/' in shown)}"
        caught += 1
