"""A script that IPython runs: magics' machinery, display hooks and a post mortem traceback."""

import torch
from state import exact, report
from torch import nn

torch.manual_seed(14)
model = nn.Sequential(nn.Linear(3, 3), nn.Sigmoid())
total = sum(exact(model(torch.randn(2, 3)).sum().item()) != "" for _ in range(5))
try:
    model(torch.ones(2, 4))
except RuntimeError as error:
    found = str(error)
report(model, total=total, found=found, name=__name__)
