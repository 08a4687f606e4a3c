"""A script that records the allocator's history itself gets its own."""
# /// xmem
# iterations = 3
# stdout-without = ["done"]
#
# [virtual-gpu]
# stdout = ["nothing before: 0", "own entries: True", "with stacks: True", "nothing after: 0"]
# ///
import torch
from torch import nn


def entries():
    traces = torch.cuda.memory._snapshot().get("device_traces", [])
    return [entry for trace in traces for entry in trace]


model = nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 10)).cuda()
side = torch.cuda.Stream()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(20):
    if step == 1:
        print("nothing before:", len(entries()))
        torch.cuda.memory._record_memory_history(stacks="python")
        block = torch.zeros(1000, device="cuda")
        own = [entry for entry in entries() if entry["action"] == "alloc"]
        print("own entries:", len(own) == 1)
        print("with stacks:", all(entry["frames"] for entry in own))
    if step == 2:
        torch.cuda.memory._record_memory_history(None)
        print("nothing after:", len(entries()))
    optimizer.zero_grad()
    with torch.cuda.stream(side):
        batch = torch.randn(512, 1024, device="cuda")
    model(batch).sum().backward()
    optimizer.step()
print("done")
