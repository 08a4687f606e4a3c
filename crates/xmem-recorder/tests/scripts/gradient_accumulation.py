"""Four backward passes for each step of the optimizer."""
# /// xmem
# iterations = 3
# stdout = ["backward 11"]
# stdout-without = ["backward 12"]
# [recording]
# "/iterations/by" = "optimizer steps"
# "/iterations/count" = 3
# "/iterations/backwards" = 12
# [export]
# "/accumulation" = 4
# "/zero_grad/place" = "after-step"
# "/inputs" = { length = 1 }
# "/dynamic/batch/size" = 64
# ///
import torch
from torch import nn

model = nn.Sequential(nn.Linear(256, 512), nn.Tanh(), nn.Linear(512, 256)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
accumulate = 4

for micro in range(1000):
    inputs = torch.randn(64, 256).cuda()
    loss = (model(inputs) - inputs).square().mean() / accumulate
    loss.backward()
    print("backward", micro, flush=True)
    if (micro + 1) % accumulate == 0:
        optimizer.step()
        optimizer.zero_grad()
