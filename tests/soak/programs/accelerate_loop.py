"""accelerate: model, optimizer and loader prepared, accumulation, a state saved and loaded."""

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from state import exact, file_digest, report
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

set_seed(5)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Dropout(0.1), nn.Linear(16, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
data = TensorDataset(torch.randn(32, 6), torch.randint(0, 3, (32,)))
loader = DataLoader(data, batch_size=4, shuffle=True)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)

losses = []
for _ in range(2):
    for features, wanted in loader:
        with accelerator.accumulate(model):
            loss = nn.functional.cross_entropy(model(features), wanted)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
        losses.append(exact(accelerator.gather(loss.detach()).mean().item()))
accelerator.save_state("saved")
accelerator.load_state("saved")
report(
    accelerator.unwrap_model(model),
    losses=losses,
    checkpoint=file_digest("saved/model.safetensors"),
)
