"""Lazy modules on the GPU: parameters that have no size when the model is moved, and get one in the first call."""
# /// xmem
# iterations = 3
# skip-on-cpu = "PyTorch refuses the redirected Tensor.to of parameters without a size"
# stdout-without = ["done"]
# [recording]
# "/iterations/count" = 3
# "/optimizers" = { length = 1 }
# ///
import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.LazyLinear(2048), nn.ReLU(), nn.LazyLinear(10)).to(device)
model(torch.zeros(2, 1024, device=device))
optimizer = torch.optim.AdamW(model.parameters())

for _ in range(100):
    x = torch.randn(64, 1024, device=device)
    y = torch.randint(0, 10, (64,), device=device)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
print("done")
