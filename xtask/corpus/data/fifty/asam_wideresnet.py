# Adaptive SAM on a WideResNet-16-4 (after davda54/sam, MIT)
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base_optimizer, rho=2.0, adaptive=True, **kwargs):
        assert rho >= 0.0
        super().__init__(params, dict(rho=rho, adaptive=adaptive, **kwargs))
        self.base_optimizer = base_optimizer(self.param_groups, **kwargs)
        self.param_groups = self.base_optimizer.param_groups
        self.defaults.update(self.base_optimizer.defaults)

    @torch.no_grad()
    def step(self, closure=None):
        assert closure is not None
        closure = torch.enable_grad()(closure)
        scale = self.param_groups[0]["rho"] / (self._norm() + 1e-12)
        for g in self.param_groups:
            for p in g["params"]:
                if p.grad is None:
                    continue
                self.state[p]["e_w"] = e = (p.pow(2) if g["adaptive"] else 1.0) * p.grad * scale.to(p)
                p.add_(e)
        self.zero_grad()
        loss = closure()
        for g in self.param_groups:
            for p in g["params"]:
                if p.grad is not None:
                    p.sub_(self.state[p]["e_w"])
        self.base_optimizer.step()
        self.zero_grad()
        return loss

    def _norm(self):
        return torch.norm(
            torch.stack(
                [
                    ((p.abs() if g["adaptive"] else 1.0) * p.grad).norm(p=2)
                    for g in self.param_groups
                    for p in g["params"]
                    if p.grad is not None
                ]
            ),
            p=2,
        )


class Block(nn.Module):
    def __init__(self, i, o, s):
        super().__init__()
        self.b1, self.c1 = nn.BatchNorm2d(i), nn.Conv2d(i, o, 3, s, 1, bias=False)
        self.b2, self.c2 = nn.BatchNorm2d(o), nn.Conv2d(o, o, 3, 1, 1, bias=False)
        self.sc = nn.Conv2d(i, o, 1, s, bias=False) if i != o else None

    def forward(self, x):
        y = F.relu(self.b1(x))
        sc = x if self.sc is None else self.sc(y)
        return sc + self.c2(F.dropout(F.relu(self.b2(self.c1(y))), 0.1, self.training))


def wrn(k=4, classes=10):
    layers, i = [nn.Conv2d(3, 16, 3, 1, 1, bias=False)], 16
    for w, s in ((16 * k, 1), (32 * k, 2), (64 * k, 2)):
        layers += [Block(i, w, s), Block(w, w, 1)]
        i = w
    return nn.Sequential(
        *layers, nn.BatchNorm2d(i), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(i, classes)
    )


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--batch_size", default=64, type=int)
    p.add_argument("--steps", default=5, type=int)
    args = p.parse_args()
    model = wrn().cuda()
    optimizer = SAM(model.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer.base_optimizer, 3)
    for step in range(args.steps):
        x, y = torch.randn(args.batch_size, 3, 32, 32).cuda(), torch.randint(0, 10, (args.batch_size,)).cuda()

        def closure():
            out = F.cross_entropy(model(x), y, label_smoothing=0.1)
            out.backward()
            return out

        loss = closure()
        optimizer.step(closure)
        scheduler.step()
        print(step, loss.item())
    model.eval()
    with torch.no_grad():
        print((model(torch.randn(256, 3, 32, 32).cuda()).argmax(1) == 0).float().mean().item())
