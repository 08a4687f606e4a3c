"""Autocast with layers that are an `einsum`: CUDA's list has it, the CPU's has not. A weight is cast once for both of
its uses, and its cast is kept until autocast ends."""
# /// xmem
# iterations = 3
# stdout = ["einsum torch.bfloat16, disabled torch.float32, addmv torch.bfloat16, exp torch.float32"]
# stdout-without = ["done"]
# [recording]
# "/autocast_lists" = "cuda"
# [virtual-gpu]
# stdout = ["einsum torch.bfloat16, disabled torch.float32, addmv torch.bfloat16, exp torch.float32"]
# contains-cpu = 1.0
# ///
import torch
from torch import nn


class Projection(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs) * 0.02)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return torch.einsum("bsi,oi->bso", x, self.weight) + self.bias


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = Projection(256, 512)
        self.down = Projection(512, 256)

    def forward(self, x):
        for _ in range(2):
            x = self.down(nn.functional.gelu(self.up(x)))
        return x


model = Model().to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    x = torch.randn(16, 64, 256, device="cuda")
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        result = model(x)
        if step == 0:
            weight, bias = model.up.weight, model.up.bias
            with torch.autocast("cuda", enabled=False):
                disabled = torch.einsum("oi,i->o", weight, x[0, 0]).dtype
            enabled = torch.einsum("oi,i->o", weight, x[0, 0]).dtype
            product = torch.addmv(bias, weight, x[0, 0]).dtype
            kinds = f"disabled {disabled}, addmv {product}, exp {result.exp().dtype}"
            print(f"einsum {enabled}, {kinds}")
        loss = result.square().mean()
    loss.backward()
    optimizer.step()
print("done")
