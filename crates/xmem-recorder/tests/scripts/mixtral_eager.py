"""Mixtral of transformers, with its experts called one after the other."""
# /// xmem
# torch = ">=2.7"
# iterations = 3
# stdout-without = ["done"]
# [virtual-gpu]
# options = ["--assume", "routing=0..1"]
# contains-cpu = 1.0
# ///
import torch
from transformers import MixtralConfig, MixtralForCausalLM

config = MixtralConfig(
    vocab_size=1000, hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, num_local_experts=8, max_position_embeddings=256, use_cache=False,
)
config._experts_implementation = "eager"
model = MixtralForCausalLM(config).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(20):
    optimizer.zero_grad()
    ids = torch.randint(0, 1000, (8, 128)).cuda()
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
print("done")
