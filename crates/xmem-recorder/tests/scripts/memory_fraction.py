"""A process that may use half of the device's memory."""
# /// xmem
# iterations = 3
# stdout-without = ["done"]
# [recording]
# "/memory_fraction" = 0.5
# [replay]
# "/target/allocator/memory_fraction" = 0.5
# ///
import torch
from torch import nn

torch.cuda.set_per_process_memory_fraction(0.5)
model = nn.Linear(1024, 1024).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(20):
    optimizer.zero_grad()
    model(torch.randn(64, 1024, device="cuda")).sum().backward()
    optimizer.step()
print("done")
