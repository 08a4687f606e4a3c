"""Speech recognition: Whisper of transformers, small, in bfloat16 autocast; AdamW without biases'
decay."""

import torch
from transformers import WhisperConfig, WhisperForConditionalGeneration

COVERS = ["speech", "encoder-decoder", "amp", "adamw"]
FRAMES, WORDS = 600, 8000


def setup(device):
    config = WhisperConfig(
        vocab_size=WORDS,
        d_model=256,
        encoder_layers=4,
        decoder_layers=4,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=1024,
        decoder_ffn_dim=1024,
        max_source_positions=FRAMES // 2,
        use_cache=False,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        begin_suppress_tokens=None,
    )
    model = WhisperForConditionalGeneration(config).to(device)
    plain = [p for p in model.parameters() if p.ndim < 2]
    rest = [p for p in model.parameters() if p.ndim >= 2]
    optimizer = torch.optim.AdamW([{"params": rest}, {"params": plain, "weight_decay": 0.0}], lr=1e-4)

    def step():
        sound = torch.randn(4, 80, FRAMES).to(device)
        words = torch.randint(3, WORDS, (4, 48)).to(device)
        optimizer.zero_grad()
        with torch.autocast(device.type, torch.bfloat16):
            loss = model(input_features=sound, labels=words).loss
        loss.backward()
        optimizer.step()

    return model, step
