"""A compiled model and a copy of it, between code that keeps values: the compiler sees neither."""
# /// xmem
# options = ["--steps", "3"]
# iterations = 3
# skip-on-cpu = "nothing is compiled there"
# [virtual-gpu]
# stdout = ["no graph breaks", "the labels are known: [0, 1, 2, 3]"]
# ///
import copy

import torch
from torch import nn
from torch._dynamo.utils import counters

model = torch.compile(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)).cuda(), backend="eager")
average = copy.deepcopy(model)
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    optimizer.zero_grad()
    labels = torch.arange(8, device="cuda")
    labels = labels[labels < 4]
    outputs = model(torch.randn(4, 64, device="cuda")) + average(torch.randn(4, 64, device="cuda"))
    nn.functional.cross_entropy(outputs, labels).backward()
    if step == 2:
        print(f"the labels are known: {labels.tolist()}", flush=True)
        print("graph breaks" if counters["graph_break"] else "no graph breaks", flush=True)
    optimizer.step()
