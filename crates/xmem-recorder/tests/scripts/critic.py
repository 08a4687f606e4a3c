"""Wasserstein: three steps of the critic for one of the generator, which ends the iteration."""
# /// xmem
# iterations = 3
# stdout = ["generator step 1"]
# stdout-without = ["generator step 4", "done"]
# ///
import torch
from torch import nn

device = torch.device("cuda")
generator = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 784)).to(device)
critic = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 1)).to(device)
optimizer_g = torch.optim.RMSprop(generator.parameters(), lr=5e-5)
optimizer_c = torch.optim.RMSprop(critic.parameters(), lr=5e-5)

for iteration in range(50):
    for _ in range(3):
        optimizer_c.zero_grad()
        with torch.no_grad():
            fake = generator(torch.randn(64, 64, device=device))
        loss = critic(fake).mean() - critic(torch.rand(64, 784, device=device)).mean()
        loss.backward()
        optimizer_c.step()
        for parameter in critic.parameters():
            parameter.data.clamp_(-0.01, 0.01)
    optimizer_g.zero_grad()
    (-critic(generator(torch.randn(64, 64, device=device))).mean()).backward()
    optimizer_g.step()
    print("generator step", iteration, flush=True)
print("done")
