# Graph attention (v2) in plain PyTorch on a random citation graph; dense features, edge softmax by scatter, early stopping
import torch
import torch.nn as nn
import torch.nn.functional as F


class GATv2(nn.Module):
    def __init__(self, i, o, heads, concat=True):
        super().__init__()
        self.h, self.o, self.concat = heads, o, concat
        self.l, self.r = nn.Linear(i, heads * o, bias=False), nn.Linear(i, heads * o, bias=False)
        self.a = nn.Parameter(torch.empty(heads, o))
        nn.init.xavier_uniform_(self.a)

    def forward(self, x, ei):
        src, dst = ei
        l, r = self.l(x).view(-1, self.h, self.o), self.r(x).view(-1, self.h, self.o)
        e = (F.leaky_relu(l[src] + r[dst], 0.2) * self.a).sum(-1)
        m = torch.full((x.size(0), self.h), -1e9, device=x.device).scatter_reduce(
            0, dst[:, None].expand_as(e), e, "amax"
        )
        e = torch.exp(e - m[dst])
        z = torch.zeros_like(m).index_add(0, dst, e)
        alpha = F.dropout(e / (z[dst] + 1e-9), 0.5, self.training)
        out = torch.zeros(x.size(0), self.h, self.o, device=x.device).index_add(0, dst, l[src] * alpha.unsqueeze(-1))
        return out.flatten(1) if self.concat else out.mean(1)


class Net(nn.Module):
    def __init__(self, i, h, c):
        super().__init__()
        self.g1, self.g2 = GATv2(i, h, 8), GATv2(8 * h, c, 1, False)

    def forward(self, x, ei):
        return self.g2(F.dropout(F.elu(self.g1(F.dropout(x, 0.6, self.training), ei)), 0.6, self.training), ei)


N, E, C = 8000, 60000, 7
x, ei, y = torch.rand(N, 512).cuda(), torch.randint(0, N, (2, E)).cuda(), torch.randint(0, C, (N,)).cuda()
perm = torch.randperm(N).cuda()
train_mask, val_mask = torch.zeros(N, dtype=torch.bool, device="cuda"), torch.zeros(N, dtype=torch.bool, device="cuda")
train_mask[perm[:1000]] = True
val_mask[perm[1000:2000]] = True
net = Net(512, 16, C).cuda()
opt = torch.optim.Adam(net.parameters(), lr=0.005, weight_decay=5e-4)
best, patience = 0, 0
for epoch in range(12):
    net.train()
    loss = F.cross_entropy(net(x, ei)[train_mask], y[train_mask])
    opt.zero_grad()
    loss.backward()
    opt.step()
    net.eval()
    with torch.no_grad():
        acc = (net(x, ei)[val_mask].argmax(1) == y[val_mask]).float().mean().item()
    print(epoch, loss.item(), acc)
    best, patience = (acc, 0) if acc > best else (best, patience + 1)
    if patience >= 20:
        break
