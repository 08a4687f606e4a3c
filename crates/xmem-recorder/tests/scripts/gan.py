"""Two networks with an optimizer each; an iteration has a step of both."""
# /// xmem
# iterations = 3
# stdout-without = ["done"]
# [recording]
# "/iterations/count" = 3
# "/optimizers" = { length = 2 }
# [export]
# "/losses" = { length = 2 }
# "/optimizer" = { length = 2 }
# "/order/3/optimizer" = 1
# ///
import torch
from torch import nn

device = torch.device("cuda")
generator = nn.Sequential(nn.Linear(64, 256), nn.LeakyReLU(0.2), nn.Linear(256, 784), nn.Tanh()).to(device)
discriminator = nn.Sequential(nn.Linear(784, 256), nn.LeakyReLU(0.2), nn.Linear(256, 1)).to(device)
optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()
real_label, fake_label = torch.ones(64, 1, device=device), torch.zeros(64, 1, device=device)

for _ in range(100):
    real = torch.rand(64, 784).to(device)
    noise = torch.randn(64, 64, device=device)

    optimizer_d.zero_grad()
    fake = generator(noise)
    (criterion(discriminator(real), real_label) + criterion(discriminator(fake.detach()), fake_label)).backward()
    optimizer_d.step()

    optimizer_g.zero_grad()
    criterion(discriminator(fake), real_label).backward()
    optimizer_g.step()
print("done")
