"""A fraction of the memory that PyTorch does not accept: it was noted on the CPU, and ignored."""
# /// xmem
# exit = 4
# iterations = 1
# stderr = ["ValueError: Invalid fraction value: 5.0. Allowed range: 0~1"]
# [recording]
# "/ended/reason" = "exception"
# "/memory_fraction" = { absent = true }
# ///
import torch
from torch import nn

model = nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2):
    if step == 1:
        for fraction in (-1.0, 5.0):
            try:
                torch.cuda.set_per_process_memory_fraction(fraction)
            except ValueError:
                if fraction > 1:
                    raise
    optimizer.zero_grad()
    model(torch.randn(32, 256, device="cuda")).sum().backward()
    optimizer.step()
