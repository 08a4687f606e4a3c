"""Sizes by `item()` of a number that counts elements of a mask, with bounds for the share of them."""
# /// xmem
# iterations = 3
# stdout-without = ["done"]
# [virtual-gpu]
# options = ["--assume", "nonzero=0..1"]
# contains-cpu = 4.0
# [virtual-gpu.replay]
# "/verdict" = "fits"
# "/range/uncertainties" = { contains = { name = "assumed_values" } }
# ///
import torch
from torch import nn

linear = nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(linear.parameters(), lr=0.1)
for _ in range(20):
    optimizer.zero_grad()
    hidden = linear(torch.randn(8192, 64, device="cuda"))
    mask = hidden[:, 0] > 0
    rows = mask.sum().item()
    pairs = 2 * torch.count_nonzero(mask.view(2, -1), dim=1).sum().item()
    buffer = torch.zeros(rows, 64, device="cuda") + hidden.new_full((pairs // 2, 64), 1.0)
    (hidden.sum() + buffer.sum() + buffer[: rows // 2].sum()).backward()
    optimizer.step()
print("done")
