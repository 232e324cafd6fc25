"""torch-geometric: graph convolutions over batches of graphs, with pooling."""

import torch
from state import exact, report
from torch import nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GATConv, GCNConv, SAGEConv, global_mean_pool

torch.manual_seed(2)


class Graphs(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = GCNConv(5, 16)
        self.second = GATConv(16, 8, heads=2)
        self.third = SAGEConv(16, 16)
        self.head = nn.Linear(16, 2)

    def forward(self, data):
        x = self.first(data.x, data.edge_index).relu()
        x = self.second(x, data.edge_index).relu()
        x = self.third(x, data.edge_index)
        return self.head(global_mean_pool(x, data.batch))


def graph(nodes):
    edges = torch.randint(0, nodes, (2, nodes * 3))
    return Data(x=torch.randn(nodes, 5), edge_index=edges, y=torch.randint(0, 2, (1,)))


graphs = [graph(4 + number % 5) for number in range(24)]
model = Graphs()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
losses = []
for _ in range(3):
    for start in range(0, 24, 8):
        batch = Batch.from_data_list(graphs[start : start + 8])
        loss = nn.functional.cross_entropy(model(batch), batch.y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(exact(loss.item()))
report(model, losses=losses)
