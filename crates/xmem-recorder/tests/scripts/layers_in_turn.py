"""Layers that are trained one after the other, each with an optimizer of its own (forward-forward): the recording
ends within the second layer, and the answer is in doubt."""
# /// xmem
# iterations = 3
# stdout-without = ["done"]
# [replay]
# "/range/confidence" = "doubtful"
# "/diagnostics" = { contains = { code = "unequal-steps" } }
#
# [virtual-gpu.replay]
# "/range/confidence" = "doubtful"
# ///
import torch
from torch import nn

layers = [nn.Linear(64, 256).cuda(), nn.Linear(256, 256).cuda()]
optimizers = [torch.optim.Adam(layer.parameters()) for layer in layers]
for _ in range(2):
    hidden = torch.randn(128, 64, device="cuda")
    for layer, optimizer in zip(layers, optimizers):
        for _ in range(6):
            optimizer.zero_grad()
            layer(hidden).relu().square().mean().backward()
            optimizer.step()
        hidden = layer(hidden).detach()
print("done")
