"""A recommender: embedding bags for sparse features, a perceptron for dense ones, their products;
Adagrad."""

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce

COVERS = ["recommender", "adagrad"]
ROWS = (50_000, 20_000, 10_000, 4_000, 1_000, 500)
WIDTH, BATCH, PER_BAG = 64, 1024, 4


def perceptron(*widths: int) -> nn.Sequential:
    layers = [layer for a, b in zip(widths, widths[1:]) for layer in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*layers)


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(rows, WIDTH, mode="sum") for rows in ROWS)
        self.dense = perceptron(13, 512, 256, WIDTH)
        count = len(ROWS) + 1
        self.register_buffer("pairs", torch.tril_indices(count, count, -1))
        self.top = nn.Sequential(perceptron(WIDTH + count * (count - 1) // 2, 512, 256), nn.Linear(256, 1))

    def forward(self, dense, sparse):
        dense = self.dense(dense)
        starts = torch.arange(0, BATCH * PER_BAG, PER_BAG, device=dense.device)
        parts = [dense] + [bag(ids, starts) for bag, ids in zip(self.bags, sparse)]
        parts = torch.stack(parts, dim=1)
        products = torch.bmm(parts, parts.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat([dense, products], dim=1)).squeeze(1)


def setup(device):
    model = Recommender().to(device)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=1e-2)

    def step():
        dense = torch.randn(BATCH, 13).to(device)
        sparse = [torch.randint(0, rows, (BATCH * PER_BAG,)).to(device) for rows in ROWS]
        clicked = torch.randint(0, 2, (BATCH,)).float().to(device)
        optimizer.zero_grad()
        bce(model(dense, sparse), clicked).backward()
        optimizer.step()

    return model, step
