"""Batches are made smaller until one fits: the iterations are those of the batch that fits, with a new optimizer or not."""
# /// xmem
# skip-on-cpu = "memory does not run out"
# options = ["--capacity", "3GiB"]
# iterations = 4
# stdout = ["steps with a batch of 8192: 1", "steps with a batch of 2048: 2"]
# stdout-without = ["done"]
# ///
import torch
from torch import nn

WIDTH = 1 << 14
model = nn.Linear(64, WIDTH).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in (32768, 8192, 2048):
    if batch == 2048:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    try:
        for step in range(20):
            optimizer.zero_grad()
            model(torch.zeros(batch, 64, device="cuda")).square().sum().backward()
            optimizer.step()
            print(f"steps with a batch of {batch}: {step + 1}", flush=True)
            # The second step of the batch of 8192 finds no more memory.
            kept = torch.empty(2 << 30, dtype=torch.uint8, device="cuda") if batch == 8192 else None
        break
    except torch.cuda.OutOfMemoryError:
        kept = None
        torch.cuda.empty_cache()
print("done")
