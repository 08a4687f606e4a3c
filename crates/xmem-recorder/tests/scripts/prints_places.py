"""Numbers of a virtual GPU that are only printed: no size follows from them."""
# /// xmem
# iterations = 3
# [virtual-gpu]
# stdout = ["nearest …"]
# [virtual-gpu.replay]
# "/verdict" = "fits"
# "/coverage/extent" = "whole"
# "/range/confidence" = "certain"
# ///
import torch
from torch import nn

words = nn.Embedding(2000, 64).cuda()
optimizer = torch.optim.Adam(words.parameters())
for step in range(5):
    places = torch.randint(0, 2000, (256,), device="cuda")
    loss = words(places).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.3f}", places[:4].tolist())
with torch.no_grad():
    likeness = words.weight @ words.weight.t()
print("nearest", likeness.topk(5, 1).indices[:, 1:].tolist()[0])
