# beta-VAE with torch.distributions, after Higgins et al. 2017 (my own toy version)
import argparse
import torch
import torch.nn as nn
from torch.distributions import Bernoulli, Independent, Normal, kl_divergence
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--batch-size", type=int, default=96)
parser.add_argument("--beta", type=float, default=4.0)
parser.add_argument("--z", type=int, default=32)
args = parser.parse_args()
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Faces(Dataset):
    def __len__(self):
        return 500

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        return torch.rand(3, 64, 64, generator=g)


class Encoder(nn.Module):
    def __init__(self, z):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 64, 4, 2, 1),
            nn.ReLU(),
            nn.Conv2d(64, 128, 4, 2, 1),
            nn.ReLU(),
            nn.Conv2d(128, 256, 4, 2, 1),
            nn.ReLU(),
            nn.Conv2d(256, 256, 4, 2, 1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(256 * 16, 512),
            nn.ReLU(),
        )
        self.mu, self.log_sigma = nn.Linear(512, z), nn.Linear(512, z)

    def forward(self, x):
        h = self.net(x)
        return Independent(Normal(self.mu(h), nn.functional.softplus(self.log_sigma(h)) + 1e-5), 1)


class Decoder(nn.Module):
    def __init__(self, z):
        super().__init__()
        self.fc = nn.Linear(z, 256 * 16)
        self.net = nn.Sequential(
            nn.ConvTranspose2d(256, 256, 4, 2, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(256, 128, 4, 2, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(128, 64, 4, 2, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(64, 3, 4, 2, 1),
        )

    def forward(self, z):
        return Independent(Bernoulli(logits=self.net(self.fc(z).relu().view(-1, 256, 4, 4)), validate_args=False), 3)


enc, dec = Encoder(args.z).to(device), Decoder(args.z).to(device)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=5e-4)
prior = Independent(Normal(torch.zeros(args.z, device=device), torch.ones(args.z, device=device)), 1)
data = Faces()
train, val = torch.utils.data.random_split(data, [400, 100])
loader = DataLoader(train, args.batch_size, shuffle=True)
best = float("inf")
for epoch in range(args.epochs):
    enc.train(), dec.train()
    for x in loader:
        x = x.to(device)
        q = enc(x)
        z = q.rsample()
        ll = dec(z).log_prob(x)
        kl = kl_divergence(q, prior)
        loss = (args.beta * kl - ll).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    enc.eval(), dec.eval()
    total = 0.0
    with torch.no_grad():
        for x in DataLoader(val, 50):
            x = x.to(device)
            q = enc(x)
            zs = q.sample((8,))
            w = torch.stack([dec(z).log_prob(x) for z in zs]) + prior.log_prob(zs) - q.log_prob(zs)
            total += -torch.logsumexp(w, 0).sum().item()
    print(f"epoch {epoch}: train {loss.item():.2f} val IWAE {total / len(val):.2f}")
    if total < best:
        best = total
        torch.save({"enc": enc.state_dict(), "dec": dec.state_dict()}, "beta_vae.pt")
samples = dec(prior.sample((64,))).base_dist.probs
print("samples", samples.shape, samples.mean().item())
