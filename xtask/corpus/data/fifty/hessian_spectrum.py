# Train a little, then power iteration and Hutchinson's trace of the Hessian
import torch
import torch.nn as nn

torch.manual_seed(0)
net = nn.Sequential(
    nn.Conv2d(3, 48, 3, 1, 1),
    nn.ELU(),
    nn.Conv2d(48, 96, 3, 2, 1),
    nn.ELU(),
    nn.Conv2d(96, 96, 3, 2, 1),
    nn.ELU(),
    nn.AdaptiveAvgPool2d(4),
    nn.Flatten(),
    nn.Linear(96 * 16, 128),
    nn.ELU(),
    nn.Linear(128, 10),
).cuda()
params = list(net.parameters())
opt = torch.optim.SGD(params, 0.05, momentum=0.9)
x, y = torch.randn(128, 3, 32, 32, device="cuda"), torch.randint(0, 10, (128,), device="cuda")
for i in range(5):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    opt.step()
    print("train", i, loss.item())
loss = nn.functional.cross_entropy(net(x), y)
grads = torch.autograd.grad(loss, params, create_graph=True)


def hvp(v):
    return torch.autograd.grad(grads, params, grad_outputs=v, retain_graph=True)


v = [torch.randn_like(p) for p in params]
for i in range(6):
    n = torch.sqrt(sum((a * a).sum() for a in v))
    v = [a / n for a in v]
    hv = hvp(v)
    eig = sum((a * b).sum() for a, b in zip(v, hv)).item()
    v = list(hv)
    print("eigenvalue", i, eig)
traces = []
for i in range(6):
    r = [torch.randint_like(p, 2) * 2 - 1 for p in params]
    traces.append(sum((a * b).sum() for a, b in zip(r, hvp(r))).item())
print("trace", sum(traces) / len(traces))
