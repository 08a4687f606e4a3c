"""Accelerate: `prepare`, mixed precision and accumulation."""
# /// xmem
# iterations = 3
# stdout = ["device cuda"]
# stdout-without = ["done"]
# ///
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2)
print("device", accelerator.device)
model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 4))
optimizer = torch.optim.AdamW(model.parameters())
data = TensorDataset(torch.randn(2048, 256), torch.randint(0, 4, (2048,)))
model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(data, batch_size=32))

for inputs, targets in loader:
    with accelerator.accumulate(model):
        loss = nn.functional.cross_entropy(model(inputs), targets)
        accelerator.backward(loss)
        if accelerator.sync_gradients:
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
print("done")
