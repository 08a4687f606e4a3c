"""The same job as plain_cuda with a default device, set and as a context."""
# /// xmem
# iterations = 3
# stdout = ["parameters on cuda:0"]
# stdout-without = ["done"]
# same-peak = { as = "plain_cuda", within-percent = 0.5 }
# [virtual-gpu]
# torch = ">=2.2"  # PyTorch 2.1 reads the optimizer's step from the device, where its value is not known.
# ///
import torch
from torch import nn

with torch.device("cuda"):
    model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
print("parameters on", model[0].weight.device)
torch.set_default_device("cuda")
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for _ in range(100):
    inputs, targets = torch.randn(256, 512), torch.randint(0, 10, (256,))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(inputs), targets)
    loss.backward()
    optimizer.step()
print("done")
