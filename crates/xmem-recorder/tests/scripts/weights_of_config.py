"""A Llama of 7B on a virtual GPU, and a small one on the CPU, is made from its configuration."""
# /// xmem
# iterations = 2
# options = ["--steps", "2"]
# stdout = ["training"]
# stdout-without = ["done"]
# environment = { TRANSFORMERS_VERBOSITY = "error", HF_HUB_DISABLE_PROGRESS_BARS = "1" }
# ///
import torch
from transformers import LlamaConfig, LlamaForCausalLM

with open("/proc/self/maps") as maps:
    layers = 32 if "libxmem-vgpu" in maps.read() else 1
    size = 4096 if layers > 1 else 512
torch.set_default_dtype(torch.bfloat16)
config = LlamaConfig(hidden_size=size, num_hidden_layers=layers, num_attention_heads=8)
model = LlamaForCausalLM(config).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
print("training", flush=True)
for step in range(20):
    ids = torch.randint(0, 32000, (1, 128), device="cuda")
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print("done")
