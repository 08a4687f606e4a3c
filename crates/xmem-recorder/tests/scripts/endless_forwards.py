"""A server: it has an optimizer, which makes no step, and calls its model without end."""
# /// xmem
# options = ["--steps", "2"]
# iterations = 40
# [recording]
# "/ended/reason" = "forwards"
# "/iterations/count" = 40
# ///
import torch
from torch import nn

model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8)).cuda()
optimizer = torch.optim.Adam(model.parameters())
while True:
    model(torch.randn(32, 64).cuda())
