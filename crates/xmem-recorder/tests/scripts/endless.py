"""A script that hangs after one iteration, ended by xmem."""
# /// xmem
# options = ["--timeout", "60s"]
# exit = 4
# iterations = 1
# stdout = ["waiting"]
# [recording]
# "/ended/reason" = "timeout"
# ///
import time

import torch
from torch import nn

model = nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.randn(32, 256, device="cuda")).sum().backward()
optimizer.step()
print("waiting", flush=True)
while True:
    time.sleep(0.1)
