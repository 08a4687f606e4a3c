"""Expandable segments, with a cache that is released in the loop."""
# /// xmem
# environment = { PYTORCH_CUDA_ALLOC_CONF = "expandable_segments:True" }
# iterations = 3
# stdout-without = ["done"]
# ///
import torch
from torch import nn

model = nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(20):
    optimizer.zero_grad()
    batch = torch.randn(8000 + 9000 * step, 1024, device="cuda")
    model(batch).sum().backward()
    optimizer.step()
    del batch
    torch.cuda.empty_cache()
print("done")
