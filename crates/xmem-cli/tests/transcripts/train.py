"""Trains a small GPT-2 on random tokens."""
import argparse

import torch
from transformers import GPT2Config, GPT2LMHeadModel

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=8)
parser.add_argument("--layers", type=int, default=4)
arguments = parser.parse_args()

ids = {"bos_token_id": 0, "eos_token_id": 0}
config = GPT2Config(n_layer=arguments.layers, n_embd=256, n_head=4, vocab_size=5000, **ids)
model = GPT2LMHeadModel(config).to("cuda")
optimizer = torch.optim.AdamW(model.parameters())
for step in range(30):
    tokens = torch.randint(config.vocab_size, (arguments.batch_size, 128)).to("cuda")
    loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
torch.save(model.state_dict(), "model.pt")
print("saved the model")
