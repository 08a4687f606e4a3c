"""A small training script, written for CUDA."""

import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=64)
batch_size = parser.parse_args().batch_size

model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters())
for step in range(5):
    inputs = torch.randn(batch_size, 1024, device="cuda")
    labels = torch.randint(10, (batch_size,), device="cuda")
    loss = torch.nn.functional.cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("trained", step + 1, "steps")
