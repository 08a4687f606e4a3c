"""A script with an allocator of its own is recorded with PyTorch's caching allocator, and says so."""
# /// xmem
# iterations = 3
#
# [virtual-gpu]
# stdout = ["done"]
#
# [recording]
# "/notes" = { contains = "the script's own allocator (change_current_allocator) is left out: the recording is of PyTorch's caching allocator" }
# ///
import torch
from torch import nn

# Any library with functions of these names will do, as none is called.
own = torch.cuda.memory.CUDAPluggableAllocator("libc.so.6", "malloc", "free")
torch.cuda.memory.change_current_allocator(own)
model = nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(512, 1024, device="cuda")).sum().backward()
    optimizer.step()
print("done")
