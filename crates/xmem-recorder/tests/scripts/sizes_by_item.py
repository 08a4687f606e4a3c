"""`item()` of an unknown number gives a size: there is no verdict, and the answer names the line."""
# /// xmem
# iterations = 3
# stdout-without = ["done"]
# [virtual-gpu.replay]
# "/verdict" = "withheld"
# "/withheld" = ["assumed-sizes"]
# "/diagnostics" = { contains = { code = "assumed-sizes", message = "what Tensor.item at sizes_by_item.py:21 gives decides sizes, and depends on values that a virtual GPU does not compute: record on the CPU, without --virtual-gpu" } }
# ///
import torch
from torch import nn

linear = nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(linear.parameters(), lr=0.1)
for _ in range(20):
    optimizer.zero_grad()
    hidden = linear(torch.randn(4096, 64, device="cuda"))
    # Memory that a kernel would write, and that holds something else.
    longest = torch.empty(1, dtype=torch.int64, device="cuda")
    longest.copy_(hidden.detach().abs().max().long())
    length = max(longest.max().item(), 0) + 1
    (hidden.sum() + torch.zeros(64, length * 8, device="cuda").sum()).backward()
    optimizer.step()
print("done")
