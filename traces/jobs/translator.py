"""Translation with torch.nn.Transformer, masks included; Adam with a schedule."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy

COVERS = ["encoder-decoder", "scheduler", "adam"]
WORDS, WIDTH, BATCH, LENGTH = 8000, 256, 16, 64


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.body = nn.Transformer(WIDTH, 8, 3, 3, 1024, dropout=0.1, batch_first=True, norm_first=True)
        self.head = nn.Linear(WIDTH, WORDS)

    def embed(self, words):
        return self.words(words) + self.places(torch.arange(words.shape[1], device=words.device))

    def forward(self, source, target):
        causal = nn.Transformer.generate_square_subsequent_mask(target.shape[1], device=target.device)
        return self.head(self.body(self.embed(source), self.embed(target), tgt_mask=causal))


def setup(device):
    model = Translator().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=100)

    def step():
        source, target = torch.randint(0, WORDS, (2, BATCH, LENGTH)).to(device)
        optimizer.zero_grad()
        cross_entropy(model(source, target).flatten(0, 1), target.flatten()).backward()
        optimizer.step()
        schedule.step()

    return model, step
