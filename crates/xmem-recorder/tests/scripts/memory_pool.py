"""A `torch.cuda.MemPool` for a part of the model, and one that is deleted in the loop."""
# /// xmem
# torch = ">=2.6"
# iterations = 3
# stdout-without = ["done"]
# ///
import torch
from torch import nn

pool = torch.cuda.MemPool()
with torch.cuda.use_mem_pool(pool):
    head = nn.Linear(3000, 1000).cuda()
body = nn.Sequential(nn.Linear(1000, 3000), nn.ReLU()).cuda()
optimizer = torch.optim.AdamW([*body.parameters(), *head.parameters()])
for _ in range(20):
    optimizer.zero_grad()
    scratch = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(scratch):
        batch = torch.randn(700, 1000, device="cuda")
        other = torch.randn(3000, 1000, device="cuda") * 2
    del other
    hidden = body(batch)
    with torch.cuda.use_mem_pool(pool):
        result = head(hidden)
    result.sum().backward()
    optimizer.step()
    del batch, scratch
print("done")
