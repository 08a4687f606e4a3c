"""A teacher that goes to the GPU for its forward and back to the host: its memory there counts while it is there."""
# /// xmem
# [replay]
# "/peak/allocated_bytes" = 34637824
# ///
import torch
from torch import nn

teacher = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(4)])
model = nn.Sequential(nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 1024)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(20):
    inputs = torch.randn(256, 1024, device="cuda")
    teacher.to("cuda")
    with torch.no_grad():
        targets = teacher(inputs)
    teacher.to("cpu")
    nn.functional.mse_loss(model(inputs), targets).backward()
    optimizer.step()
    optimizer.zero_grad()
