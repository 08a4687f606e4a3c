# Deep ensemble trained in one go with torch.func: stack_module_state, functional_call, vmap, grad
import copy
import torch
from torch import nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap

torch.manual_seed(0)
device = "cuda"
N, B = 8, 256


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(784, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 10))

    def forward(self, x):
        return self.net(x.flatten(1))


models = [Net().to(device) for _ in range(N)]
params, buffers = stack_module_state(models)
base = copy.deepcopy(models[0]).to("meta")


def loss_fn(p, b, x, y):
    return nn.functional.cross_entropy(functional_call(base, (p, b), (x,)), y)


step_fn = vmap(grad_and_value(loss_fn), in_dims=(0, 0, 0, 0), randomness="different")
m = {k: torch.zeros_like(v) for k, v in params.items()}
for it in range(12):
    x = torch.randn(N, B, 1, 28, 28, device=device)
    y = torch.randint(0, 10, (N, B), device=device)
    grads, losses = step_fn(params, buffers, x, y)
    with torch.no_grad():
        for k in params:
            m[k].mul_(0.9).add_(grads[k])
            params[k].sub_(0.01 * m[k])
    if it % 3 == 0:
        print(it, losses.mean().item())
with torch.no_grad():
    x = torch.randn(1000, 1, 28, 28, device=device)
    logits = vmap(lambda p, b: functional_call(base, (p, b), (x,)))(params, buffers)
    print("disagreement", logits.softmax(-1).std(0).mean().item())
