"""Tokens sorted by expert and split by the number of tokens of each, which the host reads."""
# /// xmem
# iterations = 3
# stdout-without = ["done"]
# [virtual-gpu]
# options = ["--assume", "routing=0..1"]
# contains-cpu = 1.0
# [virtual-gpu.replay]
# "/range/uncertainties" = { contains = { name = "assumed_values" } }
# ///
import torch
from torch import nn

WIDTH, EXPERTS = 64, 8

gate = nn.Linear(WIDTH, EXPERTS).cuda()
experts = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(EXPERTS)).cuda()
optimizer = torch.optim.SGD([*gate.parameters(), *experts.parameters()], lr=0.1)
for _ in range(20):
    optimizer.zero_grad()
    x = torch.randn(4096, WIDTH, device="cuda")
    weights, chosen = gate(x).softmax(-1).max(-1)
    order = chosen.argsort()
    parts = x[order].split(torch.bincount(chosen, minlength=EXPERTS).tolist())
    out = torch.cat([expert(part) for expert, part in zip(experts, parts)])
    (out * weights[order, None]).square().mean().backward()
    optimizer.step()
print("done")
