"""A branch that a value of the GPU decides, as in EBGAN's loss: the answer is not certain."""
# /// xmem
# iterations = 3
# stdout-without = ["done"]
# [virtual-gpu.replay]
# "/verdict" = "fits"
# "/range/confidence" = "likely"
# "/diagnostics" = { contains = { code = "unknown-control-flow", severity = "note" } }
# ///
import torch
from torch import nn

model = nn.Linear(256, 256).cuda()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(20):
    optimizer.zero_grad()
    loss = model(torch.randn(32, 256, device="cuda")).square().mean()
    if (1 - loss.data).item() > 0:
        loss = loss + model(torch.randn(512, 256, device="cuda")).square().mean()
    # What ends a job that works is not decided by values.
    if loss.item() > 1e6:
        raise ValueError("the loss explodes")
    loss.backward()
    optimizer.step()
print("done")
