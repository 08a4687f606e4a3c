# Momentum contrast with a queue as memory bank
import copy
import torch
import torch.nn as nn
import torch.nn.functional as F
from torchvision.models import resnet18


class MoCo(nn.Module):
    def __init__(self, dim=128, K=8192, m=0.99, T=0.1):
        super().__init__()
        self.K, self.m, self.T = K, m, T
        self.q = resnet18(num_classes=dim)
        self.q.fc = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, dim))
        self.k = copy.deepcopy(self.q)
        for p in self.k.parameters():
            p.requires_grad = False
        self.register_buffer("queue", F.normalize(torch.randn(dim, K), dim=0))
        self.register_buffer("ptr", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def momentum(self):
        for a, b in zip(self.q.parameters(), self.k.parameters()):
            b.data = b.data * self.m + a.data * (1 - self.m)

    @torch.no_grad()
    def enqueue(self, keys):
        p = int(self.ptr)
        self.queue[:, p : p + keys.size(0)] = keys.T
        self.ptr[0] = (p + keys.size(0)) % self.K

    def forward(self, a, b):
        q = F.normalize(self.q(a), dim=1)
        with torch.no_grad():
            self.momentum()
            idx = torch.randperm(b.size(0), device=b.device)
            k = F.normalize(self.k(b[idx]), dim=1)[torch.argsort(idx)]
        pos = torch.einsum("nc,nc->n", [q, k]).unsqueeze(-1)
        neg = torch.einsum("nc,ck->nk", [q, self.queue.clone().detach()])
        logits = torch.cat([pos, neg], 1) / self.T
        loss = F.cross_entropy(logits, torch.zeros(logits.size(0), dtype=torch.long, device=logits.device))
        self.enqueue(k)
        return loss


model = MoCo().cuda()
opt = torch.optim.SGD(model.q.parameters(), lr=0.06, weight_decay=5e-4, momentum=0.9)
for step in range(6):
    a, b = torch.randn(64, 3, 64, 64).cuda(), torch.randn(64, 3, 64, 64).cuda()
    loss = model(a, b)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"[{step}] {loss.item():.4f}")
# linear probe
for p in model.q.parameters():
    p.requires_grad = False
model.eval()
probe = nn.Linear(128, 10).cuda()
popt = torch.optim.Adam(probe.parameters(), 1e-2)
for step in range(4):
    with torch.no_grad():
        f = model.q(torch.randn(128, 3, 64, 64).cuda())
    loss = F.cross_entropy(probe(f), torch.randint(0, 10, (128,)).cuda())
    popt.zero_grad()
    loss.backward()
    popt.step()
    print("probe", loss.item())
