"""Saved tensors in pinned memory of the host, which is no memory of the GPU."""
# /// xmem
# stdout-without = ["done"]
# [replay]
# "/peak/allocated_bytes" = 54719488
#
# [virtual-gpu]
# stdout = ["done"]
# [virtual-gpu.replay]
# "/host/pinned_bytes" = { at-least = 40000000 }
# ///
import torch
from torch import nn

model = nn.Sequential(*[nn.Sequential(nn.Linear(512, 512), nn.GELU()) for _ in range(8)]).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(20):
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        loss = model(torch.randn(2048, 512, device="cuda")).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print("done")
