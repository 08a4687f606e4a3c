"""Weights of a parametrization are computed while the model is made, before anything is on the GPU."""
# /// xmem
# options = ["--steps", "3"]
# stderr = ["recorded 3 iterations"]
# iterations = 3
# ///
import torch
from torch import nn
from torch.nn.utils import parametrizations


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.position = parametrizations.weight_norm(nn.Conv1d(64, 64, 15, padding=7), dim=2)
        with torch.no_grad():
            for _ in range(8):
                self.position.weight.norm()
        self.layers = nn.Sequential(nn.Linear(64, 2048), nn.ReLU(), nn.Linear(2048, 64))

    def forward(self, batch):
        return self.layers(self.position(batch).transpose(1, 2))


model = Encoder().to("cuda")
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(5):
    loss = model(torch.randn(16, 64, 200, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
