"""The same job as plain_cuda, written with `.to(device)` and an availability check."""
# /// xmem
# iterations = 3
# stdout = ["training on cuda:0"]
# stdout-without = ["done"]
# same-peak = { as = "plain_cuda", within-percent = 0.5 }
# ///
import torch
from torch import nn


def main():
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    print("training on", device)
    model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
    model.to(device)
    assert next(model.parameters()).is_cuda
    assert next(model.parameters()).device == device
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(100):
        inputs, targets = torch.randn(256, 512), torch.randint(0, 10, (256,))
        inputs = inputs.to(device, non_blocking=True)
        targets = targets.to(device=device)
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
    print("done")


if __name__ == "__main__":
    main()
