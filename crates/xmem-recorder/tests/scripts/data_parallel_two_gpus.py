"""DataParallel on two devices: each replica has a thread, and the recording all of their memory."""
# /// xmem
# options = ["--gpus", "2"]
# iterations = 3
# stdout-without = ["done"]
#
# [virtual-gpu]
# stdout = ["2 replicas"]
# [virtual-gpu.replay]
# "/other_gpus/0/index" = 1
# "/other_gpus/0/allocated_bytes" = 19023872
# "/other_gpus/0/reserved_bytes" = 25165824
# ///
import torch
from torch import nn

model = nn.DataParallel(nn.Sequential(nn.Linear(512, 4096), nn.ReLU(), nn.Dropout(), nn.Linear(4096, 10)).cuda())
print(max(1, len(model.device_ids or ())), "replicas")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for _ in range(20):
    optimizer.zero_grad()
    out = model(torch.randn(64, 512).cuda())
    assert out.shape == (64, 10)
    out.sum().backward()
    optimizer.step()
print("done")
