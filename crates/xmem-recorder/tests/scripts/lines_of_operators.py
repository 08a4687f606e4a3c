"""Blocks have the lines that ran their operators, rather than those of the functions."""
# /// xmem
# iterations = 3
# [replay]
# "/peak/at/line" = "lines_of_operators.py(29): main"
# ///
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(512, 512)

    def forward(self, x):
        x = self.layer(x)
        x = x.repeat(64, 1)
        return x * 2


def main():
    print("starting")
    model = Net().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(20):
        x = torch.randn(64, 512, device="cuda")
        loss = model(x)
        loss = loss.square()
        loss.sum().backward()
        optimizer.step()
        optimizer.zero_grad()


main()
