"""Empirical neural tangent kernel of a small CNN (torch.func.jacrev/vmap), before and after a few steps of training."""

import torch
from torch import nn
from torch.func import functional_call, jacrev, vmap

device = torch.device("cuda")
net = nn.Sequential(
    nn.Conv2d(3, 32, 3),
    nn.ReLU(),
    nn.Conv2d(32, 32, 3),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(32, 32, 3),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(32 * 12 * 12, 10),
).to(device)


def fnet_single(params, x):
    return functional_call(net, params, (x.unsqueeze(0),)).squeeze(0)


def ntk(x1, x2):
    params = {k: v.detach() for k, v in net.named_parameters()}
    j1 = vmap(jacrev(fnet_single), (None, 0))(params, x1)
    j2 = vmap(jacrev(fnet_single), (None, 0))(params, x2)
    result = torch.stack(
        [torch.einsum("Naf,Mbf->NMab", a.flatten(2), b.flatten(2)) for a, b in zip(j1.values(), j2.values())]
    )
    return result.sum(0)


xs = torch.randn(32, 3, 32, 32, device=device)
k0 = ntk(xs[:20], xs[20:])
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
for i in range(6):
    x, y = torch.randn(128, 3, 32, 32, device=device), torch.randint(10, (128,), device=device)
    loss = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("iter", i, loss.item())
k1 = ntk(xs[:20], xs[20:])
print("kernel moved by", ((k1 - k0).norm() / k0.norm()).item())
