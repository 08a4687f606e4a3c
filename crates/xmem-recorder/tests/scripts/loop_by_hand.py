"""A loop without modules, optimizers and backward passes: no iteration is recognized, and on a virtual GPU the answer is about the
whole script."""
# /// xmem
# exit = 4
# stderr = ["…the script ended without running a model"]
# [replay]
# "/verdict" = "withheld"
# "/withheld" = ["no-iteration"]
#
# [virtual-gpu]
# exit = 4
# [virtual-gpu.replay]
# "/coverage/extent" = "whole"
# "/verdict" = "fits"
# ///
import torch

weight = torch.zeros(512, 512, device="cuda", requires_grad=True)
momentum = torch.zeros(512, 512, device="cuda")
for _ in range(4):
    inputs = torch.randn(256, 512, device="cuda")
    (gradient,) = torch.autograd.grad((inputs @ weight - inputs).square().mean(), weight)
    momentum.mul_(0.9).add_(gradient)
    with torch.no_grad():
        weight -= 0.01 * momentum
