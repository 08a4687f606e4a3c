"""A script that wants two GPUs: it sees them, and one is recorded."""
# /// xmem
# options = ["--gpus", "2"]
# iterations = 3
# stdout = ["2 GPUs"]
# stderr = ["note: the script sees 2 GPUs; the answer is about one GPU with all tensors"]
#
# [virtual-gpu]
# stdout = ["2 GPUs"]
# ///
import torch
from torch import nn

assert torch.cuda.device_count() == 2, "this script needs two GPUs"
print(torch.cuda.device_count(), "GPUs")
first = nn.Linear(256, 1024).to("cuda:0")
second = nn.Linear(1024, 10).to("cuda:1")
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
for _ in range(20):
    optimizer.zero_grad()
    hidden = first(torch.randn(64, 256, device="cuda:0")).relu()
    second(hidden.to("cuda:1")).square().mean().backward()
    optimizer.step()
