"""torch.compile: graph breaks, changing sizes, a compiled submodule; frames are counted."""

import warnings

warnings.simplefilter("ignore")

import torch  # noqa: E402
import torch._dynamo  # noqa: E402
from state import exact, report  # noqa: E402
from torch import nn  # noqa: E402

torch.manual_seed(12)


class Broken(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 4)

    def forward(self, x):
        h = self.a(x)
        torch._dynamo.graph_break()
        return self.b(h).relu()


graphs = 0


def counting(module, inputs):
    global graphs
    graphs += 1
    return module.forward


model = Broken()
compiled = torch.compile(model, backend=counting)
losses = []
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for size in (3, 3, 5, 6, 7, 3):
    loss = compiled(torch.randn(size, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(exact(loss.item()))
part = nn.Sequential(nn.Linear(4, 4), nn.GELU())
part[0].compile(backend="aot_eager")
function = torch.compile(lambda x: part(x) * 2, backend=counting, dynamic=True)
for size in (2, 3, 4):
    losses.append(exact(part(torch.ones(size, 4)).sum().item()))
    losses.append(exact(function(torch.ones(size, 4)).sum().item()))
explained = torch._dynamo.explain(Broken())(torch.ones(2, 4))
report(model, losses=losses, counted=graphs, explained=explained.graph_count)
