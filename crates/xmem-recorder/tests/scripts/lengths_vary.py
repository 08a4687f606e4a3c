"""Batches of sequences whose lengths vary: what is reserved depends on their order."""
# /// xmem
# [recording]
# "/batches/lengths" = { length = 32 }
# [replay]
# "/range/uncertainties" = { contains = { name = "other_orders" } }
# "/range/confidence" = "likely"
#
# [virtual-gpu.replay]
# "/coverage/extent" = "whole"
# ///
import random

import torch
from torch import nn
from torch.utils.data import DataLoader

random.seed(0)
torch.manual_seed(0)
samples = [torch.randint(0, 1000, (random.randint(20, 200),)) for _ in range(160)]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(1000, 128)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True) for _ in range(2)
        )
        self.head = nn.Linear(128, 1000)

    def forward(self, tokens):
        hidden = self.embedding(tokens)
        for layer in self.layers:
            hidden = layer(hidden)
        return self.head(hidden)


def collate(batch):
    return nn.utils.rnn.pad_sequence(batch, batch_first=True)


model = Model().cuda()
optimizer = torch.optim.AdamW(model.parameters())
for tokens in DataLoader(samples, 4, shuffle=True, collate_fn=collate):
    tokens = tokens.cuda()
    optimizer.zero_grad()
    logits = model(tokens)[:, :-1].flatten(0, 1)
    nn.functional.cross_entropy(logits, tokens[:, 1:].flatten()).backward()
    optimizer.step()
