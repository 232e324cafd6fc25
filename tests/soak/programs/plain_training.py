"""A plain training loop with checkpointing, AMP, hooks, and torch.save: what most programs are."""

import random

import torch
from state import digest, exact, report
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(15)
random.seed(15)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.mlp = nn.Sequential(
            nn.Linear(width, width * 2), nn.GELU(), nn.Linear(width * 2, width)
        )

    def forward(self, x):
        h = self.norm(x)
        h, _ = self.attention(h, h, h)
        x = x + h
        return x + self.mlp(self.norm(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(32, 16)
        self.blocks = nn.ModuleList(Block(16) for _ in range(3))
        self.head = nn.Linear(16, 32)
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def forward(self, ids):
        self.steps += 1
        x = self.embedding(ids)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return self.head(x)


model = Model()
seen = []
handle = model.head.register_forward_hook(lambda module, given, out: seen.append(tuple(out.shape)))
model.head.weight.register_hook(lambda gradient: gradient.clamp(-1, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
losses = []
for _ in range(6):
    ids = torch.randint(0, 32, (4, 9))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(exact(loss.item()))
handle.remove()
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "checkpoint.pt")
torch.save(model.head, "head.pt")
exported = torch.export.export(nn.Linear(3, 2), (torch.ones(1, 3),))
scripted = torch.jit.trace(nn.Linear(3, 2), torch.ones(1, 3))
report(
    model,
    losses=losses,
    seen=seen,
    saved=digest(torch.load("checkpoint.pt", weights_only=True)["model"].values()),
    nodes=len(exported.graph.nodes),
    code=scripted.code,
)
