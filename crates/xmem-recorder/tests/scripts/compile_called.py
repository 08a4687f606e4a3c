"""`torch.compile(model)` and `model.compile()`."""
# /// xmem
# iterations = 3
# stdout-without = ["done"]
# stderr = ["torch.compile"]
# [recording]
# "/notes/0" = { contains = "torch.compile" }
# [replay]
# "/range/confidence" = "doubtful"
# "/range/uncertainties" = { contains = { name = "torch_compile" } }
# "/diagnostics" = { contains = { code = "compiled-eagerly", severity = "warning" } }
# [virtual-gpu]
# torch = ">=2.2"  # Triton 2.1 looks for libcuda.so in the list of ldconfig alone.
# ///
import torch
from torch import nn

model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10)).cuda()
head = nn.Linear(10, 10).cuda()
head.compile(mode="reduce-overhead")
compiled = torch.compile(model, mode="max-autotune", fullgraph=True)
optimizer = torch.optim.AdamW([*compiled.parameters(), *head.parameters()])
for _ in range(20):
    optimizer.zero_grad()
    head(compiled(torch.randn(32, 256, device="cuda"))).sum().backward()
    optimizer.step()
print("done")
