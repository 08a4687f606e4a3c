"""A policy that acts many times, without gradients and in training mode, before it is trained: its steps are what counts."""
# /// xmem
# iterations = 3
# [recording]
# "/iterations/by" = "optimizer steps"
#
# [virtual-gpu]
# stdout = ["trained"]
# [virtual-gpu.replay]
# "/coverage/extent" = "whole"
# ///
import torch
from torch import nn

policy = nn.Sequential(nn.Linear(512, 2048), nn.Tanh(), nn.Linear(2048, 6)).cuda()
optimizer = torch.optim.Adam(policy.parameters())
seen = torch.zeros(200, 16, 512, device="cuda")
with torch.no_grad():
    for at in range(200):
        seen[at] = torch.randn(16, 512)
        torch.distributions.Categorical(logits=policy(seen[at])).sample()
for inputs in seen.flatten(0, 1).split(800):
    optimizer.zero_grad()
    policy(inputs).logsumexp(1).mean().backward()
    optimizer.step()
print("trained")
