"""Low-rank adaptation: a frozen Llama in bfloat16 of which only small factors in float32 are trained;
AdamW."""

import torch
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM

COVERS = ["lora", "causal-lm", "bf16", "adamw"]
WORDS, RANK = 8192, 8


class Adapted(nn.Module):
    def __init__(self, plain: nn.Linear):
        super().__init__()
        self.plain = plain
        self.dropout = nn.Dropout(0.05)
        self.down = nn.Linear(plain.in_features, RANK, bias=False)
        self.up = nn.Linear(RANK, plain.out_features, bias=False)

    def forward(self, x):
        change = self.up(self.down(self.dropout(x.to(self.down.weight.dtype))))
        return self.plain(x) + (2.0 * change).to(x.dtype)


def setup(device):
    config = LlamaConfig(
        num_hidden_layers=6, hidden_size=512, intermediate_size=1376, num_attention_heads=8,
        num_key_value_heads=8, vocab_size=WORDS, max_position_embeddings=512, use_cache=False,
    )  # fmt: skip
    model = LlamaForCausalLM(config).to(torch.bfloat16).requires_grad_(False)
    for layer in model.model.layers:
        for name in ("q_proj", "v_proj"):
            setattr(layer.self_attn, name, Adapted(getattr(layer.self_attn, name)))
    model.to(device)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=2e-4)

    def step():
        words = torch.randint(0, WORDS, (4, 128)).to(device)
        loss = model(input_ids=words, labels=words).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return model, step
