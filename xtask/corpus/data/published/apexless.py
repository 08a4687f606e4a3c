"""Operations of Apex for a virtual GPU: each takes the memory that the host code of Apex's kernel takes, and computes nothing.
There are those that Megatron's local layers and its optimizers call."""

import importlib.machinery
import sys
import types

import torch


class LayerNorm(torch.autograd.Function):
    """Either layer norm: the output, and a mean and a scale for each row, which are kept with the input."""

    @staticmethod
    def forward(ctx, rows, weight, bias, *options):
        ctx.options = len(options)
        rows = rows.contiguous()
        mean = torch.empty(rows.numel() // weight.numel(), dtype=torch.float32, device=rows.device)
        ctx.save_for_backward(rows, weight, bias, mean, torch.empty_like(mean))
        return torch.empty_like(rows)

    @staticmethod
    def backward(ctx, slope):
        rows, weight, bias, *_ = ctx.saved_tensors
        # These live until the gradients are returned.
        contiguous = slope.contiguous()
        slopes = torch.empty_like(rows), torch.empty_like(weight), torch.empty_like(bias)
        part = torch.empty(16, weight.numel(), dtype=torch.float32, device=rows.device)
        other = torch.empty_like(part)
        del contiguous, part, other
        return *slopes, *(None,) * ctx.options


def layer_norm(rows, weight, bias, shape, eps=1e-6, memory_efficient=False):
    return LayerNorm.apply(rows, weight, bias, shape, eps, memory_efficient)


def softmax(scores, *_):
    return torch.empty_like(scores)


def softmax_backward(slope, *_):
    return torch.empty_like(slope.contiguous())


def softmax_backward_in_place(slope, *_):
    return slope.contiguous()


class FusedAdam(torch.optim.Optimizer):
    """Two moments in float32 for each parameter, from its first step on."""

    def __init__(self, params, lr=1e-3, bias_correction=True, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, **_):
        defaults = {"lr": lr, "bias_correction": bias_correction, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, defaults)
        self.overflow = torch.tensor([0], dtype=torch.int, device="cuda")

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            group["step"] = group.get("step", 0) + 1
            for parameter in group["params"]:
                state = self.state[parameter]
                if parameter.grad is not None and not state:
                    for name in ("exp_avg", "exp_avg_sq"):
                        state[name] = torch.zeros_like(parameter, dtype=torch.float32)


def apply_to_tensors(operation, overflow, lists, *options):
    return operation(2048 * 32, overflow, lists, *options)


def norm_of_tensors(chunk, overflow, lists, per_tensor=False):
    parts = torch.zeros(320, dtype=torch.float32, device="cuda")
    each = torch.empty(len(lists[0]) if per_tensor else 0, dtype=torch.float32, device="cuda")
    return torch.zeros(1, dtype=torch.float32, device=parts.device), each


def scale_tensors(chunk, overflow, lists, factor):
    pass


def module(name, **members):
    made = types.ModuleType(name)
    made.__path__ = []
    made.__spec__ = importlib.machinery.ModuleSpec(name, None)
    vars(made).update(members)
    sys.modules[name] = made
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, made)


def install():
    """Makes the modules importable."""
    module("apex", __version__="0.1")
    module("apex.contrib")
    module("apex.contrib.layer_norm")
    module("apex.contrib.layer_norm.layer_norm", FastLayerNormFN=LayerNorm)
    module("apex.normalization")
    fused = {"FusedLayerNormAffineFunction": LayerNorm, "fused_layer_norm_affine": layer_norm}
    module("apex.normalization.fused_layer_norm", **fused)
    module("apex.optimizers", FusedAdam=FusedAdam, FusedSGD=torch.optim.SGD)
    module("apex.multi_tensor_apply", multi_tensor_applier=apply_to_tensors)
    module("amp_C", multi_tensor_l2norm=norm_of_tensors, multi_tensor_scale=scale_tensors)
    module("fused_layer_norm_cuda")
    triangle = {"forward": softmax, "backward": softmax_backward_in_place}
    module("scaled_upper_triang_masked_softmax_cuda", **triangle)
    masked = {"forward": softmax, "backward": softmax_backward, "get_batch_per_block": lambda *_: 4}
    module("scaled_masked_softmax_cuda", **masked)
