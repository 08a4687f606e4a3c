"""Gradients of each sample by `torch.func`: operators in its transforms are not recorded, as the profiler would keep their
tensors."""
# /// xmem
# torch = ">=2.1"
# skip-on-cpu = "without the operators in transforms, the memory that they need on a GPU is not known"
#
# [virtual-gpu]
# stdout = ["done"]
# [virtual-gpu.replay]
# "/coverage/extent" = "whole"
# "/peak/allocated_bytes" = { at-most = 40000000 }
# ///
import torch
from torch import nn
from torch.func import functional_call, grad, vmap

model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 10)).cuda()
parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def loss(parameters, sample, target):
    return nn.functional.cross_entropy(functional_call(model, parameters, (sample[None],)), target[None])


for _ in range(20):
    samples = torch.randn(16, 256, device="cuda")
    targets = torch.randint(0, 10, (16,), device="cuda")
    gradients = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, samples, targets)
    for name, parameter in model.named_parameters():
        parameter.grad = gradients[name].mean(0)
    optimizer.step()
    del gradients
print("done")
