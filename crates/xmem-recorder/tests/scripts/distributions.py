"""Distributions check their arguments, and samples are indices: on a virtual GPU, whose values are zeros, checks hold."""
# /// xmem
# iterations = 3
# stdout-without = ["done"]
#
# [virtual-gpu]
# stdout = ["done"]
# [virtual-gpu.replay]
# "/coverage/extent" = "whole"
# ///
import torch
from torch import nn
from torch.distributions import Categorical, Normal, kl_divergence

encoder = nn.Sequential(nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 40)).cuda()
decoder = nn.Sequential(nn.Linear(20, 128), nn.ReLU(), nn.Linear(128, 256)).cuda()
policy = nn.Linear(20, 6).cuda()
modules = nn.ModuleList([encoder, decoder, policy])
optimizer = torch.optim.Adam(modules.parameters())
for _ in range(20):
    inputs = torch.rand(64, 256, device="cuda")
    mean, log_scale = encoder(inputs).chunk(2, dim=1)
    posterior = Normal(mean, log_scale.exp())
    code = posterior.rsample()
    actions = Categorical(logits=policy(code))
    assert actions.sample().shape == (64,)
    prior = Normal(torch.zeros_like(code), torch.ones_like(code))
    loss = nn.functional.mse_loss(decoder(code), inputs) + kl_divergence(posterior, prior).mean()
    loss = loss - 0.01 * actions.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done")
