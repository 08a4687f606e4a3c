"""A model is traced before it is trained, as for a graph in TensorBoard: sizes are tensors then, and no pass is made."""
# /// xmem
# iterations = 3
# stdout = ["traced"]
# stdout-without = ["done"]
# ///
import warnings

import torch
from torch import nn

warnings.simplefilter("ignore")
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 4)).cuda()
inputs = torch.randn(8, 64, device="cuda")
traced = torch.jit.trace(model, inputs, check_trace=False)
assert "aten::linear" in str(traced.inlined_graph)
print("traced", flush=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(20):
    optimizer.zero_grad()
    model(inputs).sum().backward()
    optimizer.step()
print("done")
