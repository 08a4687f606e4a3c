# Skip-gram with negative sampling; sparse gradients, SparseAdam
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class SkipGram(Dataset):
    def __init__(self, vocab, n, window=5, negatives=10):
        g = torch.Generator().manual_seed(1)
        self.text = torch.randint(0, vocab, (n,), generator=g)
        self.vocab, self.window, self.neg = vocab, window, negatives

    def __len__(self):
        return len(self.text) - 2 * self.window

    def __getitem__(self, i):
        i += self.window
        ctx = torch.cat([self.text[i - self.window : i], self.text[i + 1 : i + 1 + self.window]])
        return self.text[i], ctx, torch.randint(0, self.vocab, (self.neg,))


class W2V(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.center = nn.Embedding(vocab, dim, sparse=True)
        self.context = nn.Embedding(vocab, dim, sparse=True)
        nn.init.uniform_(self.center.weight, -0.5 / dim, 0.5 / dim)
        nn.init.zeros_(self.context.weight)

    def forward(self, c, pos, neg):
        v = self.center(c).unsqueeze(2)
        p = torch.bmm(self.context(pos), v).squeeze(2)
        n = torch.bmm(self.context(neg), v).squeeze(2)
        return -(F.logsigmoid(p).sum(1) + F.logsigmoid(-n).sum(1)).mean()


vocab, dim = 100_000, 128
model = W2V(vocab, dim).cuda()
opt = torch.optim.SparseAdam(list(model.parameters()), lr=1e-3)
loader = DataLoader(SkipGram(vocab, 9000), 1024, shuffle=True, drop_last=True)
for epoch in range(1):
    for i, batch in enumerate(loader):
        loss = model(*[b.cuda(non_blocking=True) for b in batch])
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(epoch, i, loss.item())
w = F.normalize(model.center.weight.detach(), dim=1)
print("nearest", (w[:100] @ w.t()).topk(6, 1).indices[:, 1:].tolist()[0])
