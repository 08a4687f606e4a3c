"""Checks of scripts for the device of tensors and modules."""
# /// xmem
# iterations = 3
# stdout = ["all on cuda", "back on cpu True"]
# [recording]
# "/redirected" = { contains = { what = "Tensor.to" } }
# ///
import numpy as np
import torch
from torch import nn

model = nn.Linear(64, 64).to("cuda")
hidden = torch.zeros_like(model.weight)
batch = {"x": torch.from_numpy(np.ones((8, 64), dtype=np.float32)).to("cuda")}
assert batch["x"].is_cuda and hidden.is_cuda and batch["x"].device.index == 0
assert batch["x"].device == model.weight.device == torch.device("cuda", 0)
assert str(batch["x"].device) == "cuda:0" and torch.cuda.current_device() == 0
assert batch["x"].get_device() == 0
assert batch["x"].new_zeros(3).is_cuda and torch.empty_like(batch["x"]).is_cuda
assert isinstance(batch["x"].type(), str) and "cuda" in batch["x"].type()
print("all on", {parameter.device.type for parameter in model.parameters()}.pop())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    out = model(batch["x"])
    host = out.detach().cpu()
    if step == 0:
        print("back on", host.device, not host.is_cuda and host.numpy().shape == (8, 64), flush=True)
    optimizer.zero_grad(set_to_none=False)
    out.sum().backward()
    optimizer.step()
