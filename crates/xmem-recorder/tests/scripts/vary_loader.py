# /// xmem
# options = ["--vary", "seq=64..128"]
# iterations = 5
# stdout = ["(8, 128) (8, 128)", "(8, 64) (8, 64)", "(8, 96) (8, 96)"]
# stderr = ["note: --vary: a DataLoader returned batches of length 128; recorded iterations have 128, 64, 96 in turn…"]
# ///
"""Batches of a DataLoader that are all alike are recorded with three lengths."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

model = nn.Sequential(nn.Embedding(1000, 64), nn.Linear(64, 1000)).to("cuda")
optimizer = torch.optim.AdamW(model.parameters())
tokens = torch.randint(0, 1000, (80, 128))
for inputs, targets in DataLoader(TensorDataset(tokens, tokens), batch_size=8):
    print(tuple(inputs.shape), tuple(targets.shape), flush=True)
    inputs, targets = inputs.to("cuda"), targets.to("cuda")
    optimizer.zero_grad()
    logits = model(inputs)
    nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten()).backward()
    optimizer.step()
