"""Activations are computed again in the backward pass, with random states kept."""
# /// xmem
# iterations = 3
# stdout-without = ["done"]
# [export]
# "/checkpointing/0/module" = "blocks.0"
# "/dynamic/batch/size" = { at-least = 1 }
# ///
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Dropout(0.1), nn.Linear(1024, 256))

    def forward(self, x):
        return x + self.layers(x)


blocks = nn.ModuleList(Block() for _ in range(4)).to("cuda")
optimizer = torch.optim.AdamW(blocks.parameters())
for _ in range(20):
    x = torch.randn(64, 256, device="cuda")
    for block in blocks:
        x = checkpoint(block, x, use_reentrant=False)
    x = checkpoint(blocks[0], x, use_reentrant=True)
    optimizer.zero_grad()
    x.square().mean().backward()
    optimizer.step()
print("done")
