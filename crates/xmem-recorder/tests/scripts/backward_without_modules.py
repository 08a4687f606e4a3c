"""Training without a module and without an optimizer: backward passes are the iterations."""
# /// xmem
# iterations = 3
# stdout-without = ["done"]
# [recording]
# "/ended/reason" = "backwards"
# "/iterations/by" = "backward passes"
# "/iterations/count" = 3
# ///
import torch

first = torch.randn(64, 256, device="cuda", requires_grad=True)
second = torch.randn(256, 8, device="cuda", requires_grad=True)
for _ in range(1000):
    inputs = torch.randn(32, 64, device="cuda")
    targets = torch.randn(32, 8, device="cuda")
    loss = ((inputs @ first).relu() @ second - targets).pow(2).mean()
    loss.backward()
    with torch.no_grad():
        for weight in (first, second):
            weight -= 1e-3 * weight.grad
            weight.grad = None
print("done")
