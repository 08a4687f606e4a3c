"""A loss that computes gradients in its forward pass, as in Liger Kernel, and copies them only if they are to be scaled."""
# /// xmem
# torch = ">=2.4"
# iterations = 3
# stdout-without = ["done"]
# ///
import torch
from torch import nn

seen = []


class Loss(torch.autograd.Function):
    @staticmethod
    def forward(context, logits):
        context.save_for_backward(torch.ones_like(logits))
        return logits.sum()

    @staticmethod
    def backward(context, gradient):
        (gradients,) = context.saved_tensors
        if torch.equal(gradient, torch.tensor(1.0, device=gradient.device)):
            seen.append("one")
            return gradients
        seen.append("scaled")
        return gradients * gradient


linear = nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(linear.parameters(), lr=0.1)
one = torch.ones(4).cuda()
assert torch.equal(one, one.clone()) and one.allclose(one + 1e-9) and not torch.allclose(one, 2 * one)
assert not torch.equal(one, one[:2]) and torch.equal(input=one, other=one)
large = torch.empty(4096, 64, device="cuda")
assert large.new_zeros(4).equal(torch.zeros_like(one)) and torch.full_like(large.sum(), 7).item() == 7
for _ in range(20):
    optimizer.zero_grad()
    hidden = linear(torch.randn(1 << 17, 64, device="cuda"))
    Loss.apply(hidden).backward(retain_graph=True)
    torch.autograd.grad(Loss.apply(hidden), linear.weight, retain_graph=True)
    (Loss.apply(hidden) / 2).backward()
    assert seen == ["one", "one", "scaled"], seen
    seen.clear()
    optimizer.step()
print("done")
