# DGCNN on point clouds: dynamic k-nearest neighbors
import torch
import torch.nn as nn
import torch.nn.functional as F


def knn(x, k):
    inner = -2 * torch.matmul(x.transpose(2, 1), x)
    xx = torch.sum(x**2, dim=1, keepdim=True)
    return (-xx - inner - xx.transpose(2, 1)).topk(k=k, dim=-1)[1]


def graph_feature(x, k=20):
    b, c, n = x.shape
    idx = (knn(x, k) + torch.arange(b, device=x.device).view(-1, 1, 1) * n).view(-1)
    x = x.transpose(2, 1).contiguous()
    f = x.view(b * n, -1)[idx, :].view(b, n, k, c)
    x = x.view(b, n, 1, c).repeat(1, 1, k, 1)
    return torch.cat((f - x, x), dim=3).permute(0, 3, 1, 2).contiguous()


class DGCNN(nn.Module):
    def __init__(self, classes=40):
        super().__init__()
        dims = [(6, 64), (128, 64), (128, 128), (256, 256)]
        self.convs = nn.ModuleList(
            nn.Sequential(nn.Conv2d(i, o, 1, bias=False), nn.BatchNorm2d(o), nn.LeakyReLU(0.2)) for i, o in dims
        )
        self.last = nn.Sequential(nn.Conv1d(512, 1024, 1, bias=False), nn.BatchNorm1d(1024), nn.LeakyReLU(0.2))
        self.fc = nn.Sequential(
            nn.Linear(2048, 512, bias=False),
            nn.BatchNorm1d(512),
            nn.LeakyReLU(0.2),
            nn.Dropout(),
            nn.Linear(512, classes),
        )

    def forward(self, x):
        outs = []
        for c in self.convs:
            x = c(graph_feature(x)).max(-1)[0]
            outs.append(x)
        x = self.last(torch.cat(outs, 1))
        return self.fc(torch.cat([F.adaptive_max_pool1d(x, 1).flatten(1), F.adaptive_avg_pool1d(x, 1).flatten(1)], 1))


net = DGCNN().cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 6, eta_min=1e-3)
for it in range(6):
    pts, y = torch.randn(8, 3, 512).cuda(), torch.randint(0, 40, (8,)).cuda()
    loss = F.cross_entropy(net(pts), y, label_smoothing=0.2)
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    print(it, loss.item())
net.eval()
with torch.no_grad():
    print(
        "votes",
        sum(net(torch.randn(16, 3, 512).cuda()).softmax(1) for _ in range(3))
        .argmax(1)
        .bincount(minlength=40)
        .max()
        .item(),
    )
