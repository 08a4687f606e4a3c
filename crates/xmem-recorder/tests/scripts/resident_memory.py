"""Temporary tensors of many sizes: the recorded process returns their memory to the system, so that its
resident memory does not grow from iteration to iteration."""
# /// xmem
# options = ["--steps", "6", "--no-stacks"]
# iterations = 6
# stdout = ["resident memory is flat"]
# stdout-without = ["done"]
# [recording]
# "/iterations/resident" = { length = 6 }
# [inspect]
# "/recording/iterations/resident_bytes" = { length = 6 }
# ///
import atexit

import torch
from torch import nn


def resident():
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:")) / 1024


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.narrow(nn.functional.gelu(self.wide(self.norm(x))))


blocks = [Block(256) for _ in range(2)]
model = nn.Sequential(nn.Embedding(4096, 256), *blocks, nn.Linear(256, 4096)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
after = []


@atexit.register
def report():
    grown = after[-1] - after[1]
    print("resident memory is flat" if grown < 32 else f"resident memory grows by {grown:.0f} MiB")


for _ in range(50):
    tokens = torch.randint(0, 4096, (4, 129), device="cuda")
    optimizer.zero_grad()
    logits = model(tokens[:, :-1])
    nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).backward()
    after.append(resident())
    optimizer.step()
print("done")
