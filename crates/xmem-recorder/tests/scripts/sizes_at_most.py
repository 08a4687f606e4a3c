"""Elements of a mask that the GPU computes: all of them is the most that there can be, and fits."""
# /// xmem
# iterations = 3
# stdout-without = ["done"]
# [virtual-gpu.replay]
# "/verdict" = "fits"
# "/range/confidence" = "likely"
# "/diagnostics" = { contains = { code = "assumed-sizes", severity = "warning" } }
# ///
import torch
from torch import nn

linear = nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(linear.parameters(), lr=0.1)
for _ in range(20):
    optimizer.zero_grad()
    hidden = linear(torch.randn(4096, 64, device="cuda"))
    levels = torch.unique((hidden.detach() * 10).round())
    hidden[hidden[:, 0] > 0].sum().backward()
    optimizer.step()
print("done")
