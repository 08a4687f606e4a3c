"""Models are loaded whose weights are not on this machine: cut off after the header, pointers of Git LFS, or absent."""
# /// xmem
# options = ["--without-weights"]
# iterations = 3
# stdout = ["whole float32", "cut bfloat16", "pointer bfloat16", "nothing bfloat16", "index float32", "file torch.Size([2048, 512])"]
# stdout-without = ["done"]
# stderr = ["note: …cut contains no weights; loading zeros of the sizes in the headers of its files"]
# environment = { TRANSFORMERS_VERBOSITY = "error", HF_HUB_DISABLE_PROGRESS_BARS = "1" }
# [recording]
# "/models/0/class" = "transformers.models.llama.modeling_llama.LlamaForCausalLM"
# ///
import json
import os
import shutil

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

config = LlamaConfig(
    vocab_size=2048, hidden_size=512, intermediate_size=1024, num_hidden_layers=2, num_attention_heads=8
)
LlamaForCausalLM(config).save_pretrained("whole")
LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained("cut")
size = os.path.getsize("cut/model.safetensors")
os.truncate("cut/model.safetensors", 8192)
for name in ("pointer", "nothing", "index"):
    os.mkdir(name)
    shutil.copy("cut/config.json", name)
with open("pointer/model.safetensors", "w") as file:
    file.write(f"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize {size}\n")
with open("index/model.safetensors.index.json", "w") as file:
    elements = sum(p.numel() for p in LlamaForCausalLM(config).parameters())
    index = {"metadata": {"total_size": 4 * elements}, "weight_map": {"lm_head.weight": "model-1-of-2.safetensors"}}
    json.dump(index, file)

for name in ("whole", "cut", "pointer", "nothing", "index"):
    model = AutoModelForCausalLM.from_pretrained(name, torch_dtype="auto" if name != "index" else torch.float32)
    assert model.name_or_path == name
    print(name, str(model.dtype).replace("torch.", ""))
print("file", load_file("cut/model.safetensors")["lm_head.weight"].shape, flush=True)

model = model.cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(20):
    ids = torch.randint(0, 2048, (2, 128), device="cuda")
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print("done")
