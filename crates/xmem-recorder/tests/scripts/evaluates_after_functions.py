"""Training by functions of torch.func, whose gradients are no passes, and an evaluation after it: calls of the model count, and
what follows them is recorded. A model without memory is no damage."""
# /// xmem
# torch = ">=2.1"
# skip-on-cpu = "without the operators in transforms, the memory that they need on a GPU is not known"
#
# [virtual-gpu]
# stdout = ["done"]
# [virtual-gpu.recording]
# "/iterations/by" = "forward calls"
# [virtual-gpu.replay]
# "/verdict" = "fits"
# "/integrity/condition" = "intact"
# "/coverage/extent" = "whole"
# "/peak/allocated_bytes" = { at-least = 100000000 }
# ///
import copy

import torch
from torch import nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap

models = [nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10)).cuda() for _ in range(4)]
parameters, buffers = stack_module_state(models)
base = copy.deepcopy(models[0]).to("meta")


def loss(parameters, buffers, inputs, targets):
    return nn.functional.cross_entropy(functional_call(base, (parameters, buffers), (inputs,)), targets)


step = vmap(grad_and_value(loss))
for _ in range(10):
    inputs, targets = torch.randn(4, 64, 256, device="cuda"), torch.randint(0, 10, (4, 64), device="cuda")
    gradients, losses = step(parameters, buffers, inputs, targets)
    with torch.no_grad():
        for name, gradient in gradients.items():
            parameters[name].sub_(0.1 * gradient)
with torch.no_grad():
    inputs = torch.randn(8000, 256, device="cuda")
    outputs = vmap(lambda p, b: functional_call(base, (p, b), (inputs,)))(parameters, buffers)
print("done")
