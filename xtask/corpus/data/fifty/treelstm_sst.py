# Child-sum tree-LSTM over random binary trees, recursively, one tree at a time with accumulation
import random
import torch
import torch.nn as nn

random.seed(0)


class Node:
    def __init__(self, word=None, children=(), label=0):
        self.word, self.children, self.label = word, children, label


def tree(n):
    if n == 1:
        return Node(random.randrange(10000), label=random.randrange(5))
    k = random.randint(1, n - 1)
    return Node(None, (tree(k), tree(n - k)), random.randrange(5))


class TreeLSTM(nn.Module):
    def __init__(self, v=10000, d=300, h=512):
        super().__init__()
        self.emb, self.h = nn.Embedding(v, d), h
        self.wx, self.uh, self.fx, self.fh = nn.Linear(d, 3 * h), nn.Linear(h, 3 * h), nn.Linear(d, h), nn.Linear(h, h)
        self.out = nn.Sequential(nn.Dropout(0.5), nn.Linear(h, 5))

    def forward(self, node, losses):
        dev = self.fx.weight.device
        kids = [self(c, losses) for c in node.children]
        x = (
            self.emb(torch.tensor([node.word], device=dev))
            if node.word is not None
            else torch.zeros(1, 300, device=dev)
        )
        hs = torch.cat([k[0] for k in kids]) if kids else torch.zeros(1, self.h, device=dev)
        cs = torch.cat([k[1] for k in kids]) if kids else torch.zeros(1, self.h, device=dev)
        i, o, u = (self.wx(x) + self.uh(hs.sum(0, keepdim=True))).chunk(3, 1)
        f = torch.sigmoid(self.fx(x) + self.fh(hs))
        c = i.sigmoid() * u.tanh() + (f * cs).sum(0, keepdim=True)
        h = o.sigmoid() * c.tanh()
        losses.append(nn.functional.cross_entropy(self.out(h), torch.tensor([node.label], device=dev)))
        return h, c


net = TreeLSTM().cuda()
opt = torch.optim.Adagrad(net.parameters(), lr=0.05, weight_decay=1e-4)
for batch in range(4):
    opt.zero_grad()
    total = 0.0
    for _ in range(6):
        losses = []
        net(tree(random.randint(5, 20)), losses)
        loss = torch.stack(losses).sum() / 6
        loss.backward()
        total += loss.item()
    opt.step()
    print(batch, total)
