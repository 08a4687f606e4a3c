"""Tensors without plain memory: sparse, nested, quantized, fake, wrapped by subclasses and by transforms."""
# /// xmem
# iterations = 3
# stdout = ["kinds of tensors: …"]
# stdout-without = ["done"]
# [virtual-gpu]
# stdout = ["kinds of tensors: 8"]
# ///
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_map


class Wrapped(torch.Tensor):
    """Has a tensor, and no memory of its own."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)

    def __init__(self, inner):
        self.inner = inner

    def __repr__(self):
        return "Wrapped"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        args, kwargs = tree_map(lambda x: x.inner if isinstance(x, cls) else x, (args, kwargs or {}))
        return tree_map(lambda x: cls(x) if isinstance(x, torch.Tensor) else x, func(*args, **kwargs))


def sparse():
    tensor = torch.sparse_coo_tensor(torch.tensor([[0, 1], [2, 0]]), torch.ones(2), (3, 3), device="cuda")
    tensor * 2
    torch.isfinite(tensor.to_dense()).all()


def compressed():
    torch.sparse_csr_tensor(torch.tensor([0, 1, 2]), torch.tensor([1, 0]), torch.ones(2), (2, 2), device="cuda")


def nested():
    torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], device="cuda") * 2


def quantized():
    torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.quint8).dequantize().cuda()


def fake():
    with FakeTensorMode():
        tensor = torch.ones(4, device="cuda")
        tensor[0] = 1
        torch.topk(tensor * 2, 2)
        torch.eq(tensor, 2).all()


def wrapped():
    tensor = Wrapped(torch.ones(4, device="cuda"))
    tensor.eq(1).all()
    torch.topk(tensor * 2, 2)
    torch.isfinite(tensor).all()
    nn.Parameter(tensor) * 2


def transformed():
    tensor = torch.ones(4, 4, device="cuda")
    torch.func.vmap(lambda row: (torch.topk(row, 2).values * 2).sum())(tensor)
    torch.func.grad(lambda x: (x * x).sum())(tensor)


def meta():
    torch.topk(torch.ones(4, device="meta") * 2, 2)


kinds = [sparse, compressed, nested, quantized, fake, meta]
if torch.ones(1, device="cuda").untyped_storage().device.type == "cuda":
    # On the CPU, CUDA's part of autograd has no driver for them.
    kinds += [wrapped, transformed]
for kind in kinds:
    kind()
print("kinds of tensors:", len(kinds), flush=True)

model = nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(20):
    optimizer.zero_grad()
    model(torch.randn(64, 256, device="cuda")).sum().backward()
    optimizer.step()
print("done")
