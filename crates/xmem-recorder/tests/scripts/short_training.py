"""A script of two iterations, which ends without an error."""
# /// xmem
# iterations = 2
# stdout = ["done"]
# [recording]
# "/ended/reason" = "end"
# ///
import torch
from torch import nn

model = nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    model(torch.randn(32, 256, device="cuda")).sum().backward()
    optimizer.step()
print("done")
