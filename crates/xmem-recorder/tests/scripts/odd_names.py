"""Names and messages with characters that JSON escapes must not break the trace's metadata."""
# /// xmem
# exit = 4
# iterations = 2
# stderr = ["RuntimeError: say"]
# [recording]
# "/ended/reason" = "exception"
# "/ended/detail" = "RuntimeError at odd_names.py:30"
# "/tensors/0/name" = "layers.odd 'name'/.weight"
# ///
import torch
from torch import nn


class Naïve(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleDict({'odd "name"\\': nn.Linear(256, 256)})

    def forward(self, x):
        return self.layers['odd "name"\\'](x)


model = Naïve().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    model(torch.randn(32, 256, device="cuda")).sum().backward()
    optimizer.step()
raise RuntimeError('say "this"\nand \\that\\, naïvely')
