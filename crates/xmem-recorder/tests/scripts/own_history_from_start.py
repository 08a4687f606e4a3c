"""A script that records the allocator's history before it uses the device gets all of it."""
# /// xmem
# iterations = 3
#
# [virtual-gpu]
# stdout = ["begins with the model: True"]
# stdout-without = ["begins with the model: False"]
# ///
import torch
from torch import nn

torch.cuda.memory._record_memory_history(max_entries=100_000)
model = nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    optimizer.zero_grad()
    model(torch.randn(512, 1024, device="cuda")).sum().backward()
    optimizer.step()
    traces = torch.cuda.memory._snapshot().get("device_traces", [])
    sizes = [entry["size"] for trace in traces for entry in trace if entry["action"] == "alloc"]
    # The weight of the first layer is the first that the device allocates.
    print("begins with the model:", sizes[:1] == [4 * 1024 * 2048])
