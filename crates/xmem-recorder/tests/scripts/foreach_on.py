"""The same job as foreach_off with all parameters at once."""
# /// xmem
# iterations = 3
# stdout-without = ["done"]
# [replay]
# "/target/optimizer_impl" = "foreach"
# ///
import torch
from torch import nn

model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, foreach=True)
for _ in range(20):
    optimizer.zero_grad()
    model(torch.randn(64, 512, device="cuda")).sum().backward()
    optimizer.step()
print("done")
