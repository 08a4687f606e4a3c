"""`sys.exit(3)` after one iteration."""
# /// xmem
# exit = 4
# iterations = 1
# stdout = ["bye"]
# [recording]
# "/ended" = { reason = "exit", detail = "3" }
# ///
import sys

import torch
from torch import nn

model = nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.randn(32, 256, device="cuda")).sum().backward()
optimizer.step()
print("bye")
sys.exit(3)
