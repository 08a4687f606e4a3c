"""`torch.cuda.empty_cache()` in every iteration, and batches of different sizes."""
# /// xmem
# environment = { PYTORCH_ALLOC_CONF = "max_split_size_mb:64" }
# iterations = 3
# stdout-without = ["done"]
# ///
import torch
from torch import nn

model = nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(20):
    optimizer.zero_grad()
    batch = torch.randn(4000 >> step, 1024, device="cuda")
    model(batch).sum().backward()
    torch.cuda.empty_cache()
    optimizer.step()
    del batch
    torch.cuda.empty_cache()
print("done")
