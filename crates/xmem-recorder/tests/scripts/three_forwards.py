"""As many forward calls as are requested, and then the end of the script."""
# /// xmem
# iterations = 3
# stdout = ["done"]
# [recording]
# "/ended/reason" = "forwards"
# "/iterations/count" = 3
# ///
import torch
from torch import nn

model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8)).cuda()
with torch.no_grad():
    for _ in range(3):
        print(model(torch.randn(32, 64).cuda()).argmax(-1)[0].item())
print("done")
