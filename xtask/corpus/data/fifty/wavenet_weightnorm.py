"""A small WaveNet-like vocoder with weight norm (torch.nn.utils.parametrizations), mu-law targets, removed for inference."""

import math
import time
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils import parametrize
from torch.nn.utils.parametrizations import weight_norm


class Residual(nn.Module):
    def __init__(self, ch, skip, dilation, cond):
        super().__init__()
        self.conv = weight_norm(nn.Conv1d(ch, 2 * ch, 3, dilation=dilation, padding=dilation))
        self.cond = weight_norm(nn.Conv1d(cond, 2 * ch, 1))
        self.out = weight_norm(nn.Conv1d(ch, ch + skip, 1))
        self.ch = ch

    def forward(self, x, c):
        a, b = (self.conv(x) + self.cond(c)).chunk(2, 1)
        r, s = self.out(torch.tanh(a) * torch.sigmoid(b)).split([self.ch, self.out.weight.size(0) - self.ch], 1)
        return (x + r) * math.sqrt(0.5), s


class Vocoder(nn.Module):
    def __init__(self, ch=128, skip=128, layers=10, mels=80):
        super().__init__()
        self.up = nn.ModuleList(
            [weight_norm(nn.ConvTranspose1d(mels, mels, 2 * s, stride=s, padding=s // 2)) for s in (4, 8, 8)]
        )
        self.first = nn.Conv1d(1, ch, 1)
        self.blocks = nn.ModuleList([Residual(ch, skip, 2 ** (i % 5), mels) for i in range(layers)])
        self.head = nn.Sequential(nn.ReLU(), weight_norm(nn.Conv1d(skip, skip, 1)), nn.ReLU(), nn.Conv1d(skip, 256, 1))

    def forward(self, wav, mel):
        for u in self.up:
            mel = F.leaky_relu(u(mel), 0.4)
        x = self.first(wav)
        skips = 0
        for b in self.blocks:
            x, s = b(x, mel)
            skips = skips + s
        return self.head(skips)


def mulaw(x, mu=255):
    y = torch.sign(x) * torch.log1p(mu * x.abs()) / math.log1p(mu)
    return ((y + 1) / 2 * mu + 0.5).long()


def main():
    torch.manual_seed(0)
    net = Vocoder()
    with torch.no_grad():  # data-dependent start on the host
        net(torch.rand(1, 1, 1024) * 2 - 1, torch.randn(1, 80, 4))
    net = net.cuda()
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.99)
    for step in range(8):
        t = time.time()
        wav = (torch.rand(6, 1, 8192) * 2 - 1).cuda()
        mel = torch.randn(6, 80, 32).cuda()
        logits = net(wav[:, :, :], mel)
        loss = F.cross_entropy(logits[:, :, :-1], mulaw(wav)[:, 0, 1:])
        opt.zero_grad()
        loss.backward()
        gn = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        sched.step()
        print(f"{step} loss {loss.item():.3f} grad {gn:.2f} {time.time() - t:.2f}s")
    for m in net.modules():
        if parametrize.is_parametrized(m, "weight"):
            parametrize.remove_parametrizations(m, "weight")
    net.eval()
    with torch.inference_mode():
        y = net(torch.zeros(1, 1, 16384, device="cuda"), torch.randn(1, 80, 64, device="cuda"))
    print(y.shape, sum(p.numel() for p in net.parameters()))


if __name__ == "__main__":
    main()
