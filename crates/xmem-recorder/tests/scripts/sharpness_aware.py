"""Sharpness-aware minimization: an optimizer around another, which alone makes steps, after two passes each."""
# /// xmem
# iterations = 3
# [recording]
# "/iterations/by" = "optimizer steps"
# "/iterations/backwards" = 6
#
# [virtual-gpu]
# stdout = ["step 4"]
# [virtual-gpu.replay]
# "/coverage/extent" = "whole"
# ///
import torch
from torch import nn


class SAM(torch.optim.Optimizer):
    def __init__(self, parameters, base, rho=0.05, **options):
        super().__init__(parameters, dict(rho=rho, **options))
        self.base = base(self.param_groups, **options)
        self.param_groups = self.base.param_groups

    @torch.no_grad()
    def ascend(self):
        found = [p for group in self.param_groups for p in group["params"] if p.grad is not None]
        norm = torch.stack([p.grad.norm() for p in found]).norm()
        for p in found:
            self.state[p]["old"] = p.data.clone()
            p.add_(p.grad * (0.05 / (norm + 1e-12)))
        self.zero_grad()

    @torch.no_grad()
    def descend(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.data = self.state[p]["old"]
        self.base.step()
        self.zero_grad()


model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 10)).cuda()
optimizer = SAM(model.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
for step in range(5):
    inputs, targets = torch.randn(64, 256).cuda(), torch.randint(0, 10, (64,)).cuda()
    nn.functional.cross_entropy(model(inputs), targets).backward()
    optimizer.ascend()
    nn.functional.cross_entropy(model(inputs), targets).backward()
    optimizer.descend()
    print("step", step)
