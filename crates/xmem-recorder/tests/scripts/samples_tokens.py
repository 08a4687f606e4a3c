"""Tokens are sampled until all rows have ended, of which unknown tokens are no sign: the cache grows to its end."""
# /// xmem
# options = ["--steps", "12"]
# stdout = ["8 tokens of 8"]
# ///
import torch
from torch import nn

VOCABULARY, END, LENGTH = 64, 999, 8
model = nn.Sequential(nn.Embedding(VOCABULARY, 128), nn.Linear(128, VOCABULARY)).cuda()
with torch.no_grad():
    tokens = torch.randint(0, VOCABULARY, (4, 1)).cuda()
    end = torch.tensor([END], device="cuda")
    unfinished = torch.ones(4, dtype=torch.long, device="cuda")
    while tokens.shape[1] <= LENGTH:
        scores = torch.softmax(model(tokens)[:, -1], dim=-1)
        token = torch.multinomial(scores, num_samples=1).squeeze(1)
        tokens = torch.cat([tokens, (token * unfinished)[:, None]], dim=-1)
        unfinished = unfinished & ~torch.isin(tokens[:, -1], end)
        if unfinished.max() == 0:
            break
    print(tokens.shape[1] - 1, "tokens of", LENGTH, flush=True)
