"""Texts of tensors whose values a virtual GPU does not compute: sizes on the way decide nothing."""
# /// xmem
# iterations = 3
# stdout-without = ["done"]
# [virtual-gpu]
# stdout = ["done"]
# [virtual-gpu.recording]
# "/virtual_gpu/assumed" = { length = 0 }
# [virtual-gpu.replay]
# "/verdict" = "fits"
# ///
import torch
from torch import nn

linear = nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(linear.parameters(), lr=0.1)
for _ in range(20):
    optimizer.zero_grad()
    loss = linear(torch.randn(32, 64, device="cuda")).square().mean()
    loss.backward()
    print(f"loss {loss.item()}, bias {linear.bias}", linear.weight)
    optimizer.step()
print("done")
