"""Rows of an embedding that a step reads: those of the batch, which are known, once each in the gradient."""
# /// xmem
# iterations = 3
# skip-on-cpu = "the CPU's sparse tensors are other operators"
# [virtual-gpu.replay]
# "/verdict" = "fits"
# ///
import torch
from torch import nn

table = nn.Embedding(20000, 64, sparse=True).cuda()
optimizer = torch.optim.SparseAdam(table.parameters())
for _ in range(5):
    optimizer.zero_grad()
    tokens = torch.randint(0, 20000, (256, 20)).cuda()
    rows = table(tokens).mean(1)
    rows.square().sum().backward()
    gradient = table.weight.grad.coalesce()
    distinct = tokens.unique().numel()
    assert gradient._values().shape == (distinct, 64), (gradient._values().shape, distinct)
    optimizer.step()
