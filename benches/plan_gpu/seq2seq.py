"""The sequence-to-sequence model of Sekiyama et al. (2018) with sentences of different lengths: seq2seq.py [ITERATIONS].

Encoder and decoder are LSTMs of three layers and 1,024 units (that of Chainer's examples), with 40,000 words each. A batch has 64
pairs of sentences of about the same length, which is drawn from a distribution that is close to that of WMT and cut at 50 words.
Prints the peaks that PyTorch counts.
"""

import json
import random
import sys

import torch
from torch import nn

WORDS, UNITS, LAYERS, BATCH, LONGEST = 40_000, 1024, 3, 64, 50


class Seq2Seq(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(WORDS, UNITS), nn.Embedding(WORDS, UNITS)
        self.encoder, self.decoder = (nn.LSTM(UNITS, UNITS, LAYERS, dropout=0.1, batch_first=True) for _ in range(2))
        self.words = nn.Linear(UNITS, WORDS)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        _, state = self.encoder(self.source(source))
        states, _ = self.decoder(self.target(target), state)
        return nn.functional.cross_entropy(self.words(states).flatten(0, 1), target.flatten())


def main() -> None:
    iterations = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    draw = random.Random(0)

    def batch() -> tuple[torch.Tensor, torch.Tensor]:
        words = draw.lognormvariate(3.1, 0.5)
        lengths = (words, words * draw.uniform(0.9, 1.2))
        source, target = (torch.ones(BATCH, max(2, min(LONGEST, round(n))), dtype=torch.int64) for n in lengths)
        return source.cuda(), target.cuda()

    model = Seq2Seq().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(iterations):
        optimizer.zero_grad()
        model(*batch()).backward()
        optimizer.step()
    memory = torch.cuda.memory
    print(json.dumps({"allocated": memory.max_memory_allocated(), "reserved": memory.max_memory_reserved()}))


if __name__ == "__main__":
    main()
