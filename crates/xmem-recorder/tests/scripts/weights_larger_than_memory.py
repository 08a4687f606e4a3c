"""The weights of a Llama of 7B are loaded from a file that is a hole, on a virtual GPU; on the CPU, those of a small one."""
# /// xmem
# iterations = 2
# options = ["--steps", "2"]
# stdout = ["converted: less than 2 GiB", "loaded: less than 2 GiB"]
# stdout-without = ["done"]
# environment = { TRANSFORMERS_VERBOSITY = "error", HF_HUB_DISABLE_PROGRESS_BARS = "1" }
# # The order in which releases of transformers load tensors may cost a segment.
# same-peak = { as = "weights_of_config", within-percent = 1.0 }
# ///
import json
import os
import struct

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM


def resident():
    with open("/proc/self/status") as status:
        kilobytes = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    return "less than 2 GiB" if kilobytes < 2 << 20 else f"{kilobytes} KiB"


with open("/proc/self/maps") as maps:
    layers = 32 if "libxmem-vgpu" in maps.read() else 1
    size = 4096 if layers > 1 else 512
config = LlamaConfig(hidden_size=size, num_hidden_layers=layers, num_attention_heads=8, torch_dtype="bfloat16")
with torch.device("meta"):
    tensors = LlamaForCausalLM(config).state_dict()
header, end = {"__metadata__": {"format": "pt"}}, 0
for name, tensor in tensors.items():
    begin, end = end, end + 2 * tensor.numel()
    header[name] = {"dtype": "BF16", "shape": list(tensor.shape), "data_offsets": [begin, end]}
text = json.dumps(header).encode()
os.mkdir("saved")
config.save_pretrained("saved")
with open("saved/model.safetensors", "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text)
    file.truncate(8 + len(text) + end)

converted = {name: tensor.float() for name, tensor in load_file("saved/model.safetensors").items()}
print("converted:", resident())
del converted
model = AutoModelForCausalLM.from_pretrained("saved", torch_dtype=torch.bfloat16).cuda()
print("loaded:", resident(), flush=True)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
for step in range(20):
    ids = torch.randint(0, 32000, (1, 128), device="cuda")
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print("done")
