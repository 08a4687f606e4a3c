"""An optimizer for each parameter, which steps as soon as the gradient is there: on the engine's thread on a GPU."""
# /// xmem
# iterations = 3
# stdout = ["step 1"]
# stdout-without = ["step 3", "done"]
# stderr-without = ["another thread"]
# ///
import torch
from torch import nn

model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10)).cuda()
optimizers = {parameter: torch.optim.AdamW([parameter]) for parameter in model.parameters()}


def step_of(parameter):
    optimizers[parameter].step()
    optimizers[parameter].zero_grad()


for parameter in model.parameters():
    parameter.register_post_accumulate_grad_hook(step_of)
for step in range(1000):
    model(torch.randn(32, 256, device="cuda")).sum().backward()
    print("step", step, flush=True)
print("done")
