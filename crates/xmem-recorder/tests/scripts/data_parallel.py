"""DataParallel on one device."""
# /// xmem
# iterations = 3
# stdout-without = ["done"]
# ///
import torch
from torch import nn

model = nn.DataParallel(nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for _ in range(20):
    optimizer.zero_grad()
    model(torch.randn(64, 512).cuda()).sum().backward()
    optimizer.step()
print("done")
