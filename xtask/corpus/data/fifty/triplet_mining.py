# Metric learning: batch-hard triplets, recall@1 over a gallery
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision


def batch_hard(emb, labels, margin=0.3):
    d = torch.cdist(emb, emb)
    same = labels[:, None] == labels[None]
    pos = (d * same.float()).max(1)[0]
    neg = (d + 1e6 * same.float()).min(1)[0]
    loss = F.relu(pos - neg + margin)
    hard = loss > 1e-6
    return loss.sum() / (hard.sum() + 1e-8), hard.float().mean()


class PK(torch.utils.data.Sampler):
    def __init__(self, classes, per, p, k, n):
        self.c, self.per, self.p, self.k, self.n = classes, per, p, k, n

    def __iter__(self):
        for _ in range(self.n):
            out = []
            for c in torch.randperm(self.c)[: self.p].tolist():
                out += [c * self.per + j for j in torch.randperm(self.per)[: self.k].tolist()]
            yield out

    def __len__(self):
        return self.n


labels = torch.arange(30).repeat_interleave(8)
images = torch.rand(240, 3, 96, 64)
data = torch.utils.data.TensorDataset(images, labels)
net = torchvision.models.mobilenet_v3_small(weights=None)
net.classifier = nn.Linear(576, 256)
net = net.cuda()
opt = torch.optim.Adam(net.parameters(), 3.5e-4)
warm = torch.optim.lr_scheduler.MultiStepLR(opt, [4, 6], 0.1)
for x, y in torch.utils.data.DataLoader(data, batch_sampler=PK(30, 8, 16, 4, 8)):
    emb = F.normalize(net(x.cuda()), dim=1)
    loss, frac = batch_hard(emb, y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
    warm.step()
    print(f"loss {loss.item():.4f} active {frac.item():.2f}")
net.eval()
with torch.no_grad():
    g = torch.cat([F.normalize(net(x.cuda()), dim=1) for x in images.split(60)])
    sim = g @ g.t()
    sim.fill_diagonal_(-1)
    print("recall@1", (labels.cuda()[sim.argmax(1)] == labels.cuda()).float().mean().item())
