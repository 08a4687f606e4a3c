"""A script whose memory grows, stopped at a limit."""
# /// xmem
# options = ["--max-memory", "2GiB"]
# exit = 4
# [recording]
# "/ended/reason" = "memory"
#
# [virtual-gpu]
# skip = "it needs more memory of the host than it may"
# ///
import time

import torch
from torch import nn

model = nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.randn(32, 256, device="cuda")).sum().backward()
optimizer.step()
kept = []
for _ in range(100):
    kept.append(torch.ones(16 << 20, device="cuda"))
    time.sleep(0.1)
print("done")
