"""Functions and models that are compiled and never called, as libraries have them."""
# /// xmem
# iterations = 3
# stdout-without = ["done"]
# stderr-without = ["torch.compile"]
# [recording]
# "/compiled_eagerly" = { length = 0 }
# "/notes" = { length = 0 }
# [replay]
# "/range/confidence" = "likely"
# [virtual-gpu]
# skip = "the compiler itself is there, whose first use is noted"
# ///
import torch
from torch import nn


@torch.compile
def unused(x):
    return x.square()


class Helper:
    norm = staticmethod(torch.compile(lambda x: x.norm(), dynamic=True))


torch.compile(nn.Linear(8, 8))
model = nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(20):
    optimizer.zero_grad()
    model(torch.randn(32, 256, device="cuda")).sum().backward()
    optimizer.step()
print("done")
