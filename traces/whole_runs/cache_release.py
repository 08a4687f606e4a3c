"""Two optimizers, and samples now and then, behind which the cached memory is released."""

import torch
from torch import nn

generator = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 784)).cuda()
critic = nn.Sequential(nn.Linear(784, 1024), nn.LeakyReLU(), nn.Linear(1024, 1)).cuda()
of_generator = torch.optim.Adam(generator.parameters())
of_critic = torch.optim.Adam(critic.parameters())
for step in range(40):
    noise = torch.randn(128, 64, device="cuda")
    of_critic.zero_grad()
    real = torch.randn(128, 784, device="cuda")
    (critic(generator(noise).detach()).mean() - critic(real).mean()).backward()
    of_critic.step()
    of_generator.zero_grad()
    (-critic(generator(noise)).mean()).backward()
    of_generator.step()
    if step % 15 == 14:
        with torch.no_grad():
            samples = generator.eval()(torch.randn(4096, 64, device="cuda"))
        generator.train()
        del samples
        torch.cuda.empty_cache()
print(torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
