"""Workers of multiprocessing prepare data, forked and spawned; only the trainer is recorded."""
# /// xmem
# iterations = 3
# stdout = ["forked 0 1 4 9", "spawned 0 1 4 9"]
# stdout-without = ["done"]
# ///
import multiprocessing

import torch
from torch import nn


def square(number):
    return int(torch.tensor(number).square())


def main():
    for name, method in (("forked", "fork"), ("spawned", "spawn")):
        with multiprocessing.get_context(method).Pool(2) as pool:
            print(name, *pool.map(square, range(4)), flush=True)
    model = nn.Linear(256, 256).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(20):
        optimizer.zero_grad()
        model(torch.randn(32, 256, device="cuda")).sum().backward()
        optimizer.step()
    print("done")


if __name__ == "__main__":
    main()
