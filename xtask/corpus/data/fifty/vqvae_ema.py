# VQ-VAE with exponential moving averages of the codebook and restart of dead codes
import torch
import torch.nn as nn
import torch.nn.functional as F


class Quantizer(nn.Module):
    def __init__(self, n=512, d=64, decay=0.99, beta=0.25):
        super().__init__()
        self.n, self.decay, self.beta = n, decay, beta
        e = torch.randn(n, d)
        self.register_buffer("embed", e)
        self.register_buffer("avg", e.clone())
        self.register_buffer("size", torch.ones(n))

    def forward(self, z):
        flat = z.permute(0, 2, 3, 1).reshape(-1, z.size(1))
        dist = flat.pow(2).sum(1, keepdim=True) - 2 * flat @ self.embed.t() + self.embed.pow(2).sum(1)
        idx = dist.argmin(1)
        onehot = F.one_hot(idx, self.n).type(flat.dtype)
        if self.training:
            with torch.no_grad():
                self.size.mul_(self.decay).add_(onehot.sum(0), alpha=1 - self.decay)
                self.avg.mul_(self.decay).add_(onehot.t() @ flat, alpha=1 - self.decay)
                total = self.size.sum()
                size = (self.size + 1e-5) / (total + self.n * 1e-5) * total
                self.embed.copy_(self.avg / size.unsqueeze(1))
                dead = self.size < 1e-2
                pick = flat[torch.randint(0, flat.size(0), (self.n,), device=flat.device)]
                self.embed.copy_(torch.where(dead[:, None], pick, self.embed))
        q = F.embedding(idx, self.embed).view(z.size(0), z.size(2), z.size(3), -1).permute(0, 3, 1, 2)
        loss = self.beta * F.mse_loss(z, q.detach())
        q = z + (q - z).detach()
        p = onehot.mean(0)
        return q, loss, torch.exp(-(p * (p + 1e-10).log()).sum()), idx


class VQVAE(nn.Module):
    def __init__(self, h=128, d=64):
        super().__init__()
        self.enc = nn.Sequential(
            nn.Conv2d(3, h, 4, 2, 1),
            nn.ReLU(),
            nn.Conv2d(h, h, 4, 2, 1),
            nn.ReLU(),
            nn.Conv2d(h, h, 3, 1, 1),
            nn.ReLU(),
            nn.Conv2d(h, d, 1),
        )
        self.vq = Quantizer(d=d)
        self.dec = nn.Sequential(
            nn.Conv2d(d, h, 3, 1, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(h, h, 4, 2, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(h, 3, 4, 2, 1),
        )

    def forward(self, x):
        q, l, perp, idx = self.vq(self.enc(x))
        return self.dec(q), l, perp, idx


net = VQVAE().cuda()
opt = torch.optim.AdamW(net.parameters(), 3e-4)
for epoch in range(2):
    net.train()
    for i in range(4):
        x = torch.rand(32, 3, 64, 64).cuda()
        y, l, perp, idx = net(x)
        loss = F.mse_loss(y, x) + l
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        y, l, perp, idx = net(torch.rand(64, 3, 64, 64).cuda())
    print(f"epoch {epoch} loss {loss.item():.4f} perplexity {perp.item():.1f} used {len(torch.unique(idx))}/512")
torch.save(net.state_dict(), "vqvae.pt")
