"""Models and inputs that programs of several tests use."""

from __future__ import annotations

BLOCK = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        return self.layer(x).relu()

x = torch.ones(2, 3)
"""
