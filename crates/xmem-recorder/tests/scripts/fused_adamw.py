"""An optimizer with `fused=True`."""
# /// xmem
# iterations = 3
# stdout-without = ["done"]
# [recording]
# "/optimizers/0/implementation" = "fused"
# [replay]
# "/target/optimizer_impl" = "fused"
# ///
import torch
from torch import nn

model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
for _ in range(20):
    optimizer.zero_grad()
    model(torch.randn(64, 512, device="cuda")).sum().backward()
    optimizer.step()
print("done")
