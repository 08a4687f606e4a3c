# Pointer network for the travelling salesman, REINFORCE with a critic baseline
import torch
import torch.nn as nn
import torch.nn.functional as F


class Pointer(nn.Module):
    def __init__(self, d=256):
        super().__init__()
        self.emb, self.enc, self.cell = nn.Linear(2, d), nn.LSTM(d, d, batch_first=True), nn.LSTMCell(d, d)
        self.wq, self.wk, self.v = nn.Linear(d, d), nn.Linear(d, d), nn.Parameter(torch.rand(d) / 16)
        self.start = nn.Parameter(torch.zeros(d))

    def forward(self, x, greedy=False):
        b, n, _ = x.shape
        e = self.emb(x)
        out, (h, c) = self.enc(e)
        h, c = h[0], c[0]
        keys, inp = self.wk(out), self.start.expand(b, -1)
        mask, logps, tour = torch.zeros(b, n, dtype=torch.bool, device=x.device), [], []
        for _ in range(n):
            h, c = self.cell(inp, (h, c))
            s = 10 * torch.tanh((torch.tanh(self.wq(h)[:, None] + keys) * self.v).sum(-1))
            p = F.softmax(s.masked_fill(mask, float("-inf")), 1)
            a = p.argmax(1) if greedy else torch.multinomial(p, 1).squeeze(1)
            logps.append(p.gather(1, a[:, None]).squeeze(1).clamp_min(1e-9).log())
            mask = mask.scatter(1, a[:, None], True)
            inp = e[torch.arange(b), a]
            tour.append(a)
        return torch.stack(tour, 1), torch.stack(logps, 1).sum(1)


def length(x, tour):
    p = x.gather(1, tour[..., None].expand(-1, -1, 2))
    return (p - p.roll(1, 1)).norm(dim=-1).sum(1)


actor = Pointer().cuda()
critic = nn.Sequential(nn.Flatten(), nn.Linear(40, 512), nn.ReLU(), nn.Linear(512, 1)).cuda()
oa, oc = torch.optim.Adam(actor.parameters(), 1e-4), torch.optim.Adam(critic.parameters(), 1e-4)
for it in range(6):
    x = torch.rand(256, 20, 2, device="cuda")
    tour, logp = actor(x)
    L = length(x, tour)
    base = critic(x).squeeze(1)
    la = ((L - base).detach() * logp).mean()
    lc = F.mse_loss(base, L)
    oa.zero_grad()
    la.backward()
    nn.utils.clip_grad_norm_(actor.parameters(), 1)
    oa.step()
    oc.zero_grad()
    lc.backward()
    oc.step()
    print(it, L.mean().item(), la.item(), lc.item())
with torch.no_grad():
    x = torch.rand(1000, 20, 2, device="cuda")
    print("greedy", length(x, actor(x, True)[0]).mean().item())
