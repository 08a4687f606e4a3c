"""Functions decorated with `torch.compile`, with and without arguments."""
# /// xmem
# iterations = 3
# stdout-without = ["done"]
# stderr = ["torch.compile"]
# [replay]
# "/range/confidence" = "doubtful"
# "/diagnostics" = { contains = { code = "compiled-eagerly", severity = "warning" } }
# [virtual-gpu]
# torch = ">=2.2"  # Triton 2.1 looks for libcuda.so in the list of ldconfig alone.
# ///
import torch
from torch import nn


@torch.compile
def normed(x):
    return x / x.norm(dim=-1, keepdim=True)


@torch.compile(dynamic=True)
def loss_of(x):
    return normed(x).square().sum()


model = nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(20):
    optimizer.zero_grad()
    loss_of(model(torch.randn(32, 256, device="cuda"))).backward()
    optimizer.step()
print("done")
