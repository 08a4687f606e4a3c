"""An optimizer that calls a closure, several times in each step."""
# /// xmem
# iterations = 3
# stdout-without = ["done"]
# [recording]
# "/optimizers/0/class" = "torch.optim.lbfgs.LBFGS"
# "/iterations/backwards" = { at-least = 4 }
# [export]
# "/accumulation" = 1
# "/order" = { contains = { event = "step", closure = true } }
# ///
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 1)).cuda()
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4, history_size=5)
inputs, targets = torch.randn(256, 64).cuda(), torch.randn(256, 1).cuda()


def closure():
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
    return loss


for _ in range(20):
    print("loss", optimizer.step(closure).item(), flush=True)
print("done")
