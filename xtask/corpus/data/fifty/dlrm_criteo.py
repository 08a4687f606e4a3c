# DLRM: embedding bags, pairwise interactions, row-wise Adagrad for tables, AUC on the host
import argparse
import numpy as np
import torch
import torch.nn as nn
from sklearn.metrics import roc_auc_score

ap = argparse.ArgumentParser()
ap.add_argument("--tables", type=int, nargs="+", default=[200000, 50000, 20000, 10000, 3000, 1000, 100, 100])
ap.add_argument("--dim", type=int, default=64)
ap.add_argument("--batch", type=int, default=2048)
args = ap.parse_args()


class DLRM(nn.Module):
    def __init__(self):
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(n, args.dim, mode="sum") for n in args.tables)
        self.bot = nn.Sequential(
            nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, args.dim), nn.ReLU()
        )
        f = len(args.tables) + 1
        self.register_buffer("tri", torch.tril_indices(f, f, -1))
        self.top = nn.Sequential(
            nn.Linear(args.dim + f * (f - 1) // 2, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 1)
        )

    def forward(self, dense, idx, off):
        d = self.bot(dense)
        T = torch.stack([d] + [b(i, o) for b, i, o in zip(self.bags, idx, off)], 1)
        Z = torch.bmm(T, T.transpose(1, 2))[:, self.tri[0], self.tri[1]]
        return self.top(torch.cat([d, Z], 1)).squeeze(1)


def batch(n):
    idx = [torch.randint(0, t, (n * 3,)).cuda() for t in args.tables]
    return (
        torch.rand(n, 13).cuda(),
        idx,
        [torch.arange(0, 3 * n, 3).cuda()] * len(args.tables),
        torch.randint(0, 2, (n,)).float().cuda(),
    )


net = DLRM().cuda()
opts = [
    torch.optim.Adagrad(net.bags.parameters(), 0.01),
    torch.optim.Adam([*net.bot.parameters(), *net.top.parameters()], 1e-3),
]
for it in range(6):
    *x, y = batch(args.batch)
    loss = nn.functional.binary_cross_entropy_with_logits(net(*x), y)
    for o in opts:
        o.zero_grad()
    loss.backward()
    for o in opts:
        o.step()
    print(it, loss.item())
net.eval()
ys, ps = [], []
with torch.no_grad():
    for _ in range(3):
        *x, y = batch(4096)
        ps.append(torch.sigmoid(net(*x)).cpu().numpy()), ys.append(y.cpu().numpy())
ys, ps = np.concatenate(ys), np.nan_to_num(np.concatenate(ps))
if len(set(ys.tolist())) > 1:
    print("AUC", roc_auc_score(ys, ps))
