"""An optimizer of copies that the script keeps on the host: its state, its gradients and what its step makes are there."""
# /// xmem
# [replay]
# "/peak/allocated_bytes" = 26377216
# ///
import torch
from torch import nn

model = nn.Sequential(*[nn.Linear(512, 512) for _ in range(8)]).cuda()
copies = [parameter.detach().cpu().clone().requires_grad_() for parameter in model.parameters()]
optimizer = torch.optim.AdamW(copies)
for _ in range(20):
    model(torch.randn(256, 512, device="cuda")).pow(2).mean().backward()
    for copy, parameter in zip(copies, model.parameters()):
        copy.grad = parameter.grad.cpu()
        parameter.grad = None
    optimizer.step()
    optimizer.zero_grad()
    with torch.no_grad():
        for copy, parameter in zip(copies, model.parameters()):
            parameter.copy_(copy)
