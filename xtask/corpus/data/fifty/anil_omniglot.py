# Few-shot learning: MAML with a conv net, second order, torch.func.functional_call
import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(0)
WAYS, SHOTS, QUERY, TASKS, INNER, LR = 5, 1, 15, 4, 3, 0.4


def block(i, o):
    return nn.Sequential(
        nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o, track_running_stats=False), nn.ReLU(), nn.MaxPool2d(2)
    )


net = nn.Sequential(block(1, 64), block(64, 64), block(64, 64), nn.Flatten(), nn.Linear(64 * 9, WAYS)).cuda()
meta = torch.optim.Adam(net.parameters(), 1e-3)


def episode():
    y = torch.arange(WAYS)
    xs, xq = torch.rand(WAYS * SHOTS, 1, 28, 28), torch.rand(WAYS * QUERY, 1, 28, 28)
    return [t.cuda() for t in (xs, y.repeat_interleave(SHOTS), xq, y.repeat_interleave(QUERY))]


for it in range(6):
    meta.zero_grad()
    accs = []
    for _ in range(TASKS):
        xs, ys, xq, yq = episode()
        fast = dict(net.named_parameters())
        for _ in range(INNER):
            loss = nn.functional.cross_entropy(functional_call(net, fast, (xs,)), ys)
            grads = torch.autograd.grad(loss, fast.values(), create_graph=True)
            fast = {k: w - LR * g for (k, w), g in zip(fast.items(), grads)}
        out = functional_call(net, fast, (xq,))
        (nn.functional.cross_entropy(out, yq) / TASKS).backward()
        accs.append((out.argmax(1) == yq).float().mean())
    meta.step()
    print(it, "acc", torch.stack(accs).mean().item())
