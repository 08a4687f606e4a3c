"""Autocast with `cache_enabled=False`: each use of a weight casts it again, and backward keeps each cast."""
# /// xmem
# iterations = 3
# stdout = ["torch.bfloat16"]
# stdout-without = ["done"]
# torch = ">=2.3"
# [recording]
# "/autocast" = { contains = { dtype = "float16", cache = false } }
# "/autocast_lists" = "cuda"
# [virtual-gpu]
# stdout = ["torch.float16"]
# contains-cpu = 2.5
# ///
import torch
from torch import nn


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(512, 512) * 0.02)

    def forward(self, x):
        for _ in range(4):
            x = torch.einsum("bi,oi->bo", x, self.weight).relu()
        return x


model = Shared().to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cuda")
for step in range(20):
    x = torch.randn(256, 512, device="cuda")
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.float16, cache_enabled=False):
        result = model(x)
        loss = result.float().mean()
    if step == 0:
        print(result.dtype)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
print("done")
