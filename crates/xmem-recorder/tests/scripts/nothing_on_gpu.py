"""A script that uses no GPU: there is no estimate of a GPU job."""
# /// xmem
# exit = 4
# iterations = 3
# stderr = ["…the script put no tensor on the GPU…"]
# [recording]
# "/uses_gpu" = false
# [replay]
# "/verdict" = "withheld"
# "/withheld" = ["nothing-on-gpu"]
#
# [virtual-gpu]
# skip = "there is no memory of a GPU"
# ///
import torch
from torch import nn

model = nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(20):
    optimizer.zero_grad()
    model(torch.randn(8, 64)).sum().backward()
    optimizer.step()
