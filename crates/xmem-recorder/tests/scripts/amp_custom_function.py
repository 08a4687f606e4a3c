"""A function of the script's own under autocast: `custom_fwd` casts its inputs, `custom_bwd` runs its backward with
autocast as it was in its forward."""
# /// xmem
# iterations = 3
# stdout = ["forward torch.float32 torch.float32, in autocast False", "backward True torch.bfloat16"]
# stdout-without = ["done"]
# [recording]
# "/autocast_lists" = "cuda"
# [virtual-gpu]
# contains-cpu = 0.5
# ///
import warnings

import torch
from torch import nn

warnings.simplefilter("ignore", FutureWarning)
from torch.cuda.amp import custom_bwd, custom_fwd  # noqa: E402

seen = set()


def show(*what):
    if what not in seen:
        seen.add(what)
        print(*what)


class InFloat32(torch.autograd.Function):
    @staticmethod
    @custom_fwd(cast_inputs=torch.float32)
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        show("forward", x.dtype, f"{weight.dtype}, in autocast", torch.is_autocast_enabled())
        return torch.einsum("bi,io->bo", x, weight)

    @staticmethod
    @custom_bwd
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        return gradient @ weight.t(), x.t() @ gradient


class AsGiven(torch.autograd.Function):
    @staticmethod
    @custom_fwd
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return torch.einsum("bi,io->bo", x, weight)

    @staticmethod
    @custom_bwd
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        of_x = torch.einsum("bo,io->bi", gradient, weight)
        show("backward", torch.is_autocast_enabled(), of_x.dtype)
        return of_x.to(x.dtype), torch.einsum("bi,bo->io", x, gradient).to(weight.dtype)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(256, 256)
        self.second = nn.Parameter(torch.randn(256, 256) * 0.02)
        self.third = nn.Parameter(torch.randn(256, 256) * 0.02)

    def forward(self, x):
        return AsGiven.apply(InFloat32.apply(self.first(x), self.second), self.third)


model = Model().to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(20):
    x = torch.randn(512, 256, device="cuda")
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(x).float().mean()
    loss.backward()
    optimizer.step()
print("done")
