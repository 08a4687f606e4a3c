# Energy-based model with a replay buffer of samples and Langevin dynamics (after UvA DL tutorial 8)
import random
import torch
import torch.nn as nn


class Energy(nn.Module):
    def __init__(self, h=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, h, 5, 2, 4),
            nn.SiLU(),
            nn.Conv2d(h, 2 * h, 3, 2, 1),
            nn.SiLU(),
            nn.Conv2d(2 * h, 4 * h, 3, 2, 1),
            nn.SiLU(),
            nn.Conv2d(4 * h, 4 * h, 3, 2, 1),
            nn.SiLU(),
            nn.Flatten(),
            nn.Linear(4 * h * 4, 128),
            nn.SiLU(),
            nn.Linear(128, 1),
        )

    def forward(self, x):
        return self.net(x).squeeze(-1)


class Sampler:
    def __init__(self, model, size, max_len=2048):
        self.model, self.size, self.max_len = model, size, max_len
        self.examples = [torch.rand(1, 1, 28, 28) * 2 - 1 for _ in range(size)]

    def sample(self, steps=20):
        n = sum(random.random() < 0.05 for _ in range(self.size))
        x = (
            torch.cat([torch.rand(n, 1, 28, 28) * 2 - 1, *random.choices(self.examples, k=self.size - n)])
            .detach()
            .cuda()
        )
        x = self.generate(x, steps)
        self.examples = (list(x.cpu().chunk(self.size)) + self.examples)[: self.max_len]
        return x

    def generate(self, x, steps, lr=10.0):
        training = self.model.training
        self.model.eval()
        for p in self.model.parameters():
            p.requires_grad = False
        x.requires_grad = True
        noise = torch.randn(x.shape, device=x.device)
        for _ in range(steps):
            noise.normal_(0, 0.005)
            x.data.add_(noise).clamp_(-1, 1)
            (-self.model(x)).sum().backward()
            x.grad.data.clamp_(-0.03, 0.03)
            x.data.add_(-lr * x.grad.data)
            x.grad.detach_()
            x.grad.zero_()
            x.data.clamp_(-1, 1)
        for p in self.model.parameters():
            p.requires_grad = True
        self.model.train(training)
        return x


model = Energy().cuda()
sampler = Sampler(model, 128)
opt = torch.optim.Adam(model.parameters(), 1e-4, betas=(0.0, 0.999))
sched = torch.optim.lr_scheduler.StepLR(opt, 1, 0.97)
for step in range(6):
    real = torch.rand(128, 1, 28, 28).cuda() * 2 - 1
    real = (real + torch.randn_like(real) * 0.005).clamp(-1, 1)
    fake = sampler.sample()
    er, ef = model(torch.cat([real, fake.detach()])).chunk(2)
    loss = 0.1 * (er**2 + ef**2).mean() + (ef.mean() - er.mean())
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    opt.step()
    sched.step()
    print(step, loss.item())
