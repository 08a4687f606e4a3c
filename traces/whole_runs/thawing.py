"""A backbone that is unfrozen in the second phase, with a new optimizer."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down, self.norm = nn.Linear(512, 2048), nn.Linear(2048, 512), nn.LayerNorm(512)

    def forward(self, x):
        return self.norm(x + self.down(nn.functional.gelu(self.up(x))))


body = nn.Sequential(*[Block() for _ in range(8)]).cuda()
head = nn.Linear(512, 10).cuda()


def train(optimizer):
    for _ in range(20):
        inputs = torch.randn(256, 512, device="cuda")
        targets = torch.randint(0, 10, (256,), device="cuda")
        nn.functional.cross_entropy(head(body(inputs)), targets).backward()
        optimizer.step()
        optimizer.zero_grad()


body.requires_grad_(False)
train(torch.optim.AdamW(head.parameters()))
body.requires_grad_(True)
train(torch.optim.AdamW([*head.parameters(), *body.parameters()]))
print(torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
