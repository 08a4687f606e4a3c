"""A small Llama, saved in several files, is loaded by `from_pretrained` in another dtype, and trained with checkpoints."""
# /// xmem
# iterations = 3
# stdout = ["files: …", "loaded LlamaForCausalLM in torch.bfloat16 on cuda:0"]
# stdout-without = ["done"]
# environment = { TRANSFORMERS_VERBOSITY = "error", HF_HUB_DISABLE_PROGRESS_BARS = "1" }
# [inspect]
# "/job/optimizers" = ["AdamW"]
# [recording]
# "/models" = { length = 1 }
# "/models/0/class" = "transformers.models.llama.modeling_llama.LlamaForCausalLM"
# ///
import os

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

config = LlamaConfig(
    vocab_size=2048, hidden_size=512, intermediate_size=1024, num_hidden_layers=2, num_attention_heads=8
)
LlamaForCausalLM(config).save_pretrained("saved", max_shard_size="8MB")
files = [name for name in os.listdir("saved") if name.endswith(".safetensors")]
assert len(files) > 1
print("files:", len(files))

model = AutoModelForCausalLM.from_pretrained("saved", torch_dtype=torch.bfloat16).cuda()
model.gradient_checkpointing_enable()
model.train()
print("loaded", type(model).__name__, "in", model.dtype, "on", model.device, flush=True)
optimizer = torch.optim.AdamW(model.parameters())
for step in range(20):
    ids = torch.randint(0, 2048, (2, 128), device="cuda")
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print("done")
