# /// xmem
# options = ["--vary", "seq=32,128"]
# iterations = 4
# stdout = ["(8, 128, 1000) (1024,)", "(8, 32, 1000) (1024,)"]
# stderr = ["note: --vary: the model was called with batches of length 128; recorded iterations have 128, 32 in turn…"]
# ///
"""Without a DataLoader, the arguments of the model change, and targets made outside it follow."""

import torch
from torch import nn

model = nn.Sequential(nn.Embedding(1000, 64), nn.Linear(64, 1000)).to("cuda")
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(8):
    tokens = torch.randint(0, 1000, (8, 128)).to("cuda")
    targets = tokens.flatten()
    optimizer.zero_grad()
    logits = model(tokens)
    print(tuple(logits.shape), tuple(targets.shape), flush=True)
    nn.functional.cross_entropy(logits.flatten(0, 1), targets).backward()
    optimizer.step()
