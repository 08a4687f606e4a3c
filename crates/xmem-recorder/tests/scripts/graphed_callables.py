"""`torch.cuda.make_graphed_callables`."""
# /// xmem
# iterations = 3
# stdout-without = ["done"]
# ///
import torch
from torch import nn

body = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512)).cuda()
head = nn.Linear(512, 10).cuda()
optimizer = torch.optim.AdamW([*body.parameters(), *head.parameters()])
sample = torch.randn(300, 512, device="cuda", requires_grad=True)
body = torch.cuda.make_graphed_callables(body, (sample,))
for _ in range(20):
    optimizer.zero_grad()
    batch = torch.randn(300, 512, device="cuda", requires_grad=True)
    head(body(batch)).sum().backward()
    optimizer.step()
print("done")
