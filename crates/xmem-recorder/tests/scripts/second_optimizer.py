"""Adam, and then L-BFGS, whose history grows from step to step: it is made behind the loop, whatever happens."""
# /// xmem
# stdout = ["adam", "lbfgs"]
# [recording]
# "/iterations/count" = 14
# "/ended/reason" = "end"
# "/optimizers/0/class" = "torch.optim.lbfgs.LBFGS"
# "/optimizers/0/steps" = 2
# ///
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 1)).cuda()
inputs, targets = torch.randn(256, 64).cuda(), torch.randn(256, 1).cuda()


def closure():
    model.zero_grad()
    loss = nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
    return loss


def train():
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(12):
        closure()
        optimizer.step()
    print("adam", flush=True)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)
    for _ in range(2):
        optimizer.step(closure)
    print("lbfgs", flush=True)
    return optimizer


optimizer = train()
