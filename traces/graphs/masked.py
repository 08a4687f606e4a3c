"""A job whose sizes follow from values: `xmem export -o masked.pt2 -- python masked.py`."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class M(nn.Module):
    def __init__(s):
        super().__init__()
        s.a = nn.Linear(512, 512)
        s.b = nn.Linear(512, 10)

    def forward(s, x):
        h = F.relu(s.a(x))
        keep = h.mean(1) > 0.2
        z = h[keep]
        return s.b(z).sum() + h.mean()


m = M().cuda()
o = torch.optim.SGD(m.parameters(), lr=0.1)
for i in range(3):
    x = torch.randn(4096, 512).cuda()
    l = m(x)
    l.backward()
    o.step()
    o.zero_grad()
