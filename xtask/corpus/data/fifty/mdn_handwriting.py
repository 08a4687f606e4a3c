# Mixture density network over pen strokes (Graves 2013, without the window)
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class MDN(nn.Module):
    def __init__(self, hidden=400, mix=20):
        super().__init__()
        self.cells = nn.ModuleList(
            [nn.LSTMCell(3, hidden), nn.LSTMCell(hidden + 3, hidden), nn.LSTMCell(hidden + 3, hidden)]
        )
        self.out = nn.Linear(3 * hidden, 6 * mix + 1)
        self.hidden = hidden

    def forward(self, x):
        st = [(x.new_zeros(x.size(0), self.hidden), x.new_zeros(x.size(0), self.hidden)) for _ in self.cells]
        ys = []
        for t in range(x.size(1)):
            inp, hs = x[:, t], []
            for i, cell in enumerate(self.cells):
                st[i] = cell(inp if i == 0 else torch.cat([x[:, t], hs[-1]], 1), st[i])
                hs.append(st[i][0])
            ys.append(self.out(torch.cat(hs, 1)))
        return torch.stack(ys, 1)


def nll(y, target):
    e, rest = y[..., :1], y[..., 1:]
    pi, mx, my, sx, sy, rho = rest.chunk(6, -1)
    sx, sy, rho = sx.exp(), sy.exp(), torch.tanh(rho) * 0.95
    zx, zy = (target[..., 0:1] - mx) / sx, (target[..., 1:2] - my) / sy
    z = zx**2 + zy**2 - 2 * rho * zx * zy
    logn = -z / (2 * (1 - rho**2)) - torch.log(2 * math.pi * sx * sy * torch.sqrt(1 - rho**2))
    return -torch.logsumexp(F.log_softmax(pi, -1) + logn, -1).mean() + F.binary_cross_entropy_with_logits(
        e.squeeze(-1), target[..., 2]
    )


net = MDN().cuda()
opt = torch.optim.RMSprop(net.parameters(), lr=1e-4, alpha=0.95, momentum=0.9, centered=True)
for step in range(5):
    s = torch.randn(32, 61, 3)
    s[..., 2] = (s[..., 2] > 2).float()
    s = s.cuda()
    loss = nll(net(s[:, :-1]), s[:, 1:])
    opt.zero_grad()
    loss.backward()
    for n, p in net.named_parameters():
        p.grad.clamp_(-10, 10)
    opt.step()
    print(step, loss.item())
