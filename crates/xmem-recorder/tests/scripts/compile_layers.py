"""Layers compiled by `Module.compile`, which backward passes compute again outside the call of the model."""
# /// xmem
# skip-on-cpu = "nothing is compiled"
# iterations = 3
# stdout = ["step 1 with 2 graphs"]
# stdout-without = ["done"]
# [virtual-gpu]
# torch = ">=2.11"
# ///
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(256, 256)

    def forward(self, x):
        return self.linear(x).relu()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(4))

    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False)
        return x


model = Model().cuda()
for layer in model.layers:
    layer.compile()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(20):
    optimizer.zero_grad()
    model(torch.randn(32, 256, device="cuda")).sum().backward()
    optimizer.step()
    print("step", step, "with", torch._dynamo.utils.counters["stats"]["unique_graphs"], "graphs", flush=True)
print("done")
