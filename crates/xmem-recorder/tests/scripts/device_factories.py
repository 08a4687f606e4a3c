"""The same job as plain_cuda; all tensors are made on the device: modules and tensors with `device=`."""
# /// xmem
# iterations = 3
# stdout-without = ["done"]
# same-peak = { as = "plain_cuda", within-percent = 0.5 }
# ///
import torch
from torch import nn

device = "cuda:0"
model = nn.Sequential(
    nn.Linear(512, 1024, device=device),
    nn.ReLU(),
    nn.Linear(1024, 1024, device=device),
    nn.ReLU(),
    nn.Linear(1024, 10, device=device),
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
generator = torch.Generator(device="cuda")
generator.manual_seed(7)

for _ in range(100):
    inputs = torch.randn(256, 512, device=device, generator=generator)
    targets = torch.randint(0, 10, (256,), device=torch.device("cuda", 0))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(inputs), targets)
    loss.backward()
    optimizer.step()
print("done")
