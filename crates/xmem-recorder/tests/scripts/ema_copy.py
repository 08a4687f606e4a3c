"""A moving average of the weights on the device, made by deepcopy and by torch."""
# /// xmem
# iterations = 3
# stdout-without = ["done"]
# [replay]
# "/by_role/buffer" = { at-least = 8000000 }
# ///
import copy

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel

model = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)).cuda()
average = copy.deepcopy(model).eval().requires_grad_(False)
swa = AveragedModel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(20):
    optimizer.zero_grad()
    model(torch.randn(64, 1024, device="cuda")).square().mean().backward()
    optimizer.step()
    with torch.no_grad():
        for kept, new in zip(average.parameters(), model.parameters()):
            kept.lerp_(new, 0.01)
    swa.update_parameters(model)
print("done")
