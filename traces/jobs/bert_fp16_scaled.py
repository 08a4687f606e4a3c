"""BERT in float16 autocast with a gradient scaler; AdamW, gradients clipped after unscaling."""

import torch
from transformers import BertConfig, BertForSequenceClassification

COVERS = ["encoder", "amp", "fp16", "gradient-clipping", "adamw"]
WORDS = 8192


def setup(device):
    config = BertConfig(
        num_hidden_layers=4, hidden_size=384, intermediate_size=1536, num_attention_heads=6,
        vocab_size=WORDS, max_position_embeddings=256, num_labels=5,
    )  # fmt: skip
    model = BertForSequenceClassification(config).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
    scaler = torch.amp.GradScaler(device.type, init_scale=1024.0)

    def step():
        words = torch.randint(0, WORDS, (8, 128)).to(device)
        kinds = torch.randint(0, 5, (8,)).to(device)
        optimizer.zero_grad()
        with torch.autocast(device.type, torch.float16):
            loss = model(input_ids=words, labels=kinds).loss
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()

    return model, step
