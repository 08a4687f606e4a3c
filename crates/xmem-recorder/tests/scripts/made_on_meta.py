"""A model that is made on the meta device first: its numbers of positions are copies there, which have no memory."""
# /// xmem
# options = ["--steps", "3"]
# iterations = 3
# [virtual-gpu.replay]
# "/integrity/condition" = "intact"
# ///
import torch
from torch import nn


class Positions(nn.Module):
    def __init__(self, width):
        super().__init__()
        steps = torch.arange(0, width, 2, dtype=torch.float32) / width
        self.register_buffer("rates", 1 / 10000**steps, persistent=False)
        self.rates_at_start = self.rates.clone()

    def forward(self, batch):
        return batch * self.rates.repeat(2)


def make():
    return nn.Sequential(nn.Linear(64, 2048), Positions(2048), nn.Linear(2048, 64))


with torch.device("meta"):
    make()
model = make().to("cuda")
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(32, 64, device="cuda")).square().mean().backward()
    optimizer.step()
