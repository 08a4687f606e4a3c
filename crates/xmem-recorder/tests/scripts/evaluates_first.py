"""An evaluation of many calls before the first step: it is no training, and a sample of it is computed."""
# /// xmem
# iterations = 3
# stdout = ["step 0"]
# stdout-without = ["step 4"]
# stderr = ["note: evaluation before the first step of the optimizer: 4 forward calls were computed, and 296 like them returned zeros"]
# [recording]
# "/ended/reason" = "steps"
# "/iterations/by" = "optimizer steps"
#
# [virtual-gpu]
# stdout = ["step 0"]
# [export]
# "/inputs/0/dims/0" = 64
# "/zero_grad/place" = "before-forward"
# ///
import torch
from torch import nn

model = nn.Sequential(nn.Linear(512, 1024), nn.GELU(), nn.Linear(1024, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters())


def batch(size):
    return torch.randn(size, 512, device="cuda"), torch.randint(0, 10, (size,), device="cuda")


@torch.no_grad()
def evaluate():
    model.eval()
    losses = torch.zeros(300)
    for at in range(300):
        inputs, targets = batch(1024)
        losses[at] = nn.functional.cross_entropy(model(inputs), targets).item()
    model.train()
    return losses.mean()


for step in range(20):
    if step % 10 == 0:
        print("loss", evaluate())
    inputs, targets = batch(64)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(inputs), targets).backward()
    optimizer.step()
    print("step", step)
