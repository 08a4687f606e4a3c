"""A small network with an optimizer and its settings: `train.py AdamW amsgrad=1`, `train.py SGD momentum=0.9`."""

import sys

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
layers = []
sizes = [512, 700, 900, 300, 1100]
for inputs, outputs in zip(sizes, sizes[1:]):
    layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU(), torch.nn.LayerNorm(outputs)]
model = torch.nn.Sequential(*layers, torch.nn.Linear(1100, 37)).to(device)
settings = {name: float(value) for name, value in (argument.split("=") for argument in sys.argv[2:])}
optimizer = getattr(torch.optim, sys.argv[1])(model.parameters(), lr=1e-3, **settings)
for _ in range(4):
    x = torch.randn(96, 512, device=device)
    y = torch.randint(0, 37, (96,), device=device)
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
