"""A checkpoint that is a member of a zip archive: a file that cannot be sought."""
# /// xmem
# iterations = 3
# [virtual-gpu]
# stdout = ["restored"]
# [virtual-gpu.replay]
# "/coverage/extent" = "whole"
# ///
import zipfile

import torch
from torch import nn

model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512)).cuda()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(64, 512, device="cuda")).square().mean().backward()
    optimizer.step()
with zipfile.ZipFile("model.zip", "w") as archive:
    for name, state in (("policy", model.state_dict()), ("optimizer", optimizer.state_dict())):
        with archive.open(f"{name}.pth", "w", force_zip64=True) as file:
            torch.save(state, file)
with zipfile.ZipFile("model.zip") as archive:
    with archive.open("policy.pth") as file:
        model.load_state_dict(torch.load(file, map_location="cuda"))
print("restored")
