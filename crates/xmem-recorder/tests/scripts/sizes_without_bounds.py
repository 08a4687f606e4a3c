"""A size that follows from the largest value of a tensor, about which nothing can be assumed."""
# /// xmem
# iterations = 3
# stdout-without = ["done"]
# [virtual-gpu.replay]
# "/verdict" = "withheld"
# "/withheld" = ["assumed-sizes"]
# ///
import torch
from torch import nn

linear = nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(linear.parameters(), lr=0.1)
for _ in range(20):
    optimizer.zero_grad()
    hidden = linear(torch.randn(4096, 64, device="cuda"))
    levels = (hidden.detach().sum(1).abs() * 10).long()
    counts = torch.bincount(levels)
    (hidden.sum() + torch.zeros(len(counts), 64, device="cuda").sum()).backward()
    optimizer.step()
print("done")
