"""A script that replaces itself with another Python before it trains, torch already imported."""
# /// xmem
# iterations = 3
# stdout = ["second life"]
# ///
import os
import sys

import torch

if "--again" not in sys.argv:
    os.execv(sys.executable, [sys.executable, *sys.argv, "--again"])
print("second life", flush=True)
model = torch.nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(20):
    optimizer.zero_grad()
    model(torch.randn(32, 256, device="cuda")).sum().backward()
    optimizer.step()
