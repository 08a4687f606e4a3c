"""An optimizer that keeps a buffer on the GPU among its options, as those of modded-nanogpt do: the text of the buffer would
allocate there while the recording ends, after the history of the allocator was read."""
# /// xmem
# iterations = 3
# stdout-without = ["done"]
# ///
import torch
from torch import nn


class Momentum(torch.optim.Optimizer):
    def __init__(self, params):
        buffer = torch.empty(8, 1000, device="cuda")
        super().__init__(params, {"lr": torch.tensor(0.1, device="cuda"), "buffer": buffer, "rows": list(buffer)})

    def step(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state[parameter]
                if not state:
                    state["momentum"] = torch.zeros_like(parameter)
                state["momentum"].lerp_(parameter.grad, 0.1)
                parameter.data.sub_(state["momentum"])


model = nn.Sequential(nn.Linear(1000, 3000), nn.ReLU(), nn.Linear(3000, 10)).cuda()
optimizer = Momentum(model.parameters())
for _ in range(20):
    optimizer.zero_grad()
    model(torch.randn(700, 1000, device="cuda")).sum().backward()
    optimizer.step()
print("done")
