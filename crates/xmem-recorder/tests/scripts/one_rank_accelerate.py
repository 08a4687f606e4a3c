"""One rank of eight that `accelerate launch` would start."""
# /// xmem
# iterations = 3
# command = ["{bin}/accelerate", "launch", "--num_processes", "8", "--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no", "{script}"]
# torch = ">=2.11"
# options = ["--ranks", "8", "--rank", "3"]
# stdout-without = ["done"]
# [virtual-gpu]
# stdout = ["process 3 of 8 on cuda:3", "gathered 8 rows"]
# ///
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator()
print("process", accelerator.process_index, "of", accelerator.num_processes, "on", accelerator.device, flush=True)
model = nn.Linear(512, 512)
optimizer = torch.optim.AdamW(model.parameters())
loader = DataLoader(TensorDataset(torch.randn(1024, 512)), batch_size=8)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
accelerator.wait_for_everyone()
print("gathered", len(accelerator.gather(torch.ones(1, device=accelerator.device))), "rows", flush=True)
for (rows,) in loader:
    optimizer.zero_grad()
    accelerator.backward(model(rows).square().mean())
    optimizer.step()
print("done")
