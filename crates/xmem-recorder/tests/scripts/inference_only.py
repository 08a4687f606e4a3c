"""Without training, forward calls of the model are the iterations."""
# /// xmem
# iterations = 3
# [recording]
# "/ended/reason" = "forwards"
# "/iterations/by" = "forward calls"
# [replay]
# "/by_role/gradient" = 0
# ///
import torch
from torch import nn

model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512)).cuda().eval()
with torch.inference_mode():
    for _ in range(50):
        answer = model(torch.randn(64, 512, device="cuda"))
        print(answer.argmax(-1)[0].item())
