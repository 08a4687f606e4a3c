"""Batches are prepared on a stream of their own, by a host that runs ahead of the GPU."""
# /// xmem
# iterations = 3
# stdout-without = ["done"]
# [virtual-gpu]
# options = ["--run-ahead"]
# [virtual-gpu.replay]
# "/range/uncertainties" = { contains = { name = "gpu_timing" } }
# ///
import torch
from torch import nn

model = nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
side = torch.cuda.Stream()


def prepare():
    with torch.cuda.stream(side):
        batch = torch.randn(512, 1024).pin_memory().to("cuda", non_blocking=True)
        return batch * 2 + 1, torch.ones(512, 10, device="cuda") * 3


following = prepare()
for _ in range(20):
    torch.cuda.current_stream().wait_stream(side)
    batch, weights = following
    batch.record_stream(torch.cuda.current_stream())
    weights.record_stream(torch.cuda.current_stream())
    following = prepare()
    optimizer.zero_grad()
    (model(batch) * weights).sum().backward()
    del batch, weights
    optimizer.step()
print("done")
