"""A script that makes an optimizer and only calls its model: calls are iterations, and the last one counts."""
# /// xmem
# iterations = 5
# stdout = ["done"]
# [recording]
# "/ended/reason" = "forwards"
# "/iterations/by" = "forward calls"
# "/iterations/count" = 5
# ///
import torch
from torch import nn

model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8)).cuda()
optimizer = torch.optim.Adam(model.parameters())
with torch.no_grad():
    for _ in range(5):
        print(model(torch.randn(32, 64).cuda()).argmax(-1)[0].item())
print("done")
