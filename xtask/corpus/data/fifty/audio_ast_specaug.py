# Audio classifier: torch.stft on the GPU, mel filters by hand, SpecAugment, CRNN with attention pooling
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


def mel_filters(n_mels=64, n_fft=1024, sr=16000):
    def mel(f):
        return 2595 * math.log10(1 + f / 700)

    pts = 700 * (10 ** (torch.linspace(mel(0), mel(sr / 2), n_mels + 2) / 2595) - 1)
    freqs = torch.linspace(0, sr / 2, n_fft // 2 + 1)
    up = (freqs[None] - pts[:-2, None]) / (pts[1:-1] - pts[:-2])[:, None]
    down = (pts[2:, None] - freqs[None]) / (pts[2:] - pts[1:-1])[:, None]
    return torch.minimum(up, down).clamp_min(0)


class Net(nn.Module):
    def __init__(self, classes=50):
        super().__init__()
        self.register_buffer("fb", mel_filters())
        self.register_buffer("win", torch.hann_window(1024))
        ch = [1, 64, 128, 256]
        self.cnn = nn.Sequential(
            *[
                m
                for i, o in zip(ch, ch[1:])
                for m in (nn.Conv2d(i, o, 3, 1, 1), nn.BatchNorm2d(o), nn.ReLU(), nn.MaxPool2d((2, 2)))
            ]
        )
        self.rnn = nn.GRU(256 * 8, 256, 2, batch_first=True, bidirectional=True)
        self.att, self.cla = nn.Linear(512, classes), nn.Linear(512, classes)

    def forward(self, wav):
        s = torch.stft(wav, 1024, 320, window=self.win, return_complex=True).abs().pow(2)
        x = torch.log(self.fb @ s + 1e-6)
        if self.training:
            f0, t0 = torch.randint(0, 48, (1,)).item(), torch.randint(0, x.size(-1) - 20, (1,)).item()
            x[:, f0 : f0 + 16] = 0
            x[:, :, t0 : t0 + 20] = 0
        x = self.cnn(x[:, None])
        x, _ = self.rnn(x.permute(0, 3, 1, 2).flatten(2))
        w = self.att(x).softmax(1)
        return (w * self.cla(x)).sum(1)


net = Net().cuda()
opt = torch.optim.AdamW(net.parameters(), 1e-3)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, 2e-3, total_steps=6)
for i in range(6):
    wav, y = torch.randn(16, 32000).cuda(), torch.randint(0, 50, (16,)).cuda()
    loss = F.cross_entropy(net(wav), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    print(i, loss.item())
