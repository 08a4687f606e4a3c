"""An error in the second iteration; the recording so far is kept."""
# /// xmem
# exit = 4
# iterations = 1
# stderr = ["ValueError: shapes went wrong", "recorded 1 iteration"]
# [recording]
# "/ended/reason" = "exception"
# ///
import torch
from torch import nn

model = nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10):
    if step == 1:
        raise ValueError("shapes went wrong")
    optimizer.zero_grad()
    model(torch.randn(32, 256, device="cuda")).sum().backward()
    optimizer.step()
