"""Started by `accelerate launch`."""
# /// xmem
# iterations = 3
# command = ["{bin}/accelerate", "launch", "--num_processes", "1", "--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no", "{script}"]
# stdout = ["device cuda"]
# stdout-without = ["done"]
# ///
import torch
from accelerate import Accelerator
from torch import nn

accelerator = Accelerator()
print("device", accelerator.device, flush=True)
model = nn.Linear(512, 512)
optimizer = torch.optim.AdamW(model.parameters())
model, optimizer = accelerator.prepare(model, optimizer)
for _ in range(20):
    optimizer.zero_grad()
    accelerator.backward(model(torch.randn(32, 512, device=accelerator.device)).square().mean())
    optimizer.step()
print("done")
