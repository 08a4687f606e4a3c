"""Sequence to sequence with GRU cells, step by step, and attention over the source; NAdam."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy

COVERS = ["recurrent", "nadam"]
WORDS, WIDTH, BATCH, LENGTH = 6000, 384, 48, 20


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.source, self.target = nn.Embedding(WORDS, WIDTH), nn.Embedding(WORDS, WIDTH)
        self.reads, self.writes = nn.GRUCell(WIDTH, WIDTH), nn.GRUCell(2 * WIDTH, WIDTH)
        self.words = nn.Linear(2 * WIDTH, WORDS)

    def forward(self, source, target):
        state = torch.zeros(source.shape[0], WIDTH, device=source.device)
        seen = []
        for word in self.source(source).unbind(1):
            state = self.reads(word, state)
            seen.append(state)
        seen = torch.stack(seen, dim=1)
        context, said = torch.zeros_like(state), []
        for word in self.target(target).unbind(1):
            state = self.writes(torch.cat([word, context], dim=1), state)
            weights = torch.softmax(torch.bmm(seen, state.unsqueeze(2)), dim=1)
            context = (weights * seen).sum(1)
            said.append(torch.cat([state, context], dim=1))
        return self.words(torch.stack(said, dim=1))


def setup(device):
    model = Translator().to(device)
    optimizer = torch.optim.NAdam(model.parameters(), lr=1e-3)

    def step():
        source, target = torch.randint(0, WORDS, (2, BATCH, LENGTH)).to(device)
        optimizer.zero_grad()
        said = model(source, target)
        cross_entropy(said.flatten(0, 1), target.flatten(), label_smoothing=0.1).backward()
        optimizer.step()

    return model, step
