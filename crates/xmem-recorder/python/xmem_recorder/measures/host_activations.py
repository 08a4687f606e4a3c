"""Tensors that the forward pass saves for the backward pass are kept in host memory.

Costs the time of copying them to the host and back in each step.
"""

import os

from .common import device_type_of, is_training, name_of, watch_forwards

NAME = "host-activations"
TITLE = "Activations in host memory"
CHANGES = "nothing"
NEEDS = ""
OPTION = ""
CODE = "with torch.autograd.graph.save_on_cpu(pin_memory=True): loss = model(x)"

# Smaller tensors stay on the device.
HOST_ACTIVATIONS_BYTES = 1 << 20


def install(torch, option, report):
    """Saves on the host around the outermost training forwards."""
    reported = {}
    is_test = os.environ.get("XMEM_MEASURES_TEST") == "1"
    smallest = 0 if is_test else HOST_ACTIVATIONS_BYTES

    def watcher(module, forward, args, kwargs):
        if not is_training(torch, module):
            return forward(*args, **kwargs)
        device_type = device_type_of(module)
        name = name_of(module)
        if device_type == "cpu" and not is_test:
            if not reported:
                report(0, f"{name} is on the CPU")
            reported.setdefault(name, 0)
            return forward(*args, **kwargs)
        if not reported.get(name):
            reported[name] = 1
            report(sum(reported.values()), "forward of " + ", ".join(name for name in reported if reported[name]))
        with _host_activation_hooks(torch, module, device_type, smallest):
            return forward(*args, **kwargs)

    watch_forwards(torch, watcher)


def _host_activation_hooks(torch, module, device_type, smallest):
    """Hooks like those of `save_on_cpu` (torch/autograd/graph.py) that leave alone the parameters and buffers of the
    module, small tensors, and views that repeat their elements."""
    kept = {_host_storage_of(tensor) for tensor in module.parameters()}
    kept.update(_host_storage_of(tensor) for tensor in module.buffers())
    kept.discard(None)
    pin = device_type == "cuda"

    def pack(tensor):
        size = tensor.numel() * tensor.element_size()
        if type(tensor) is not torch.Tensor or tensor.layout is not torch.strided or size < smallest:
            return tensor
        if tensor.device.type != device_type or _host_storage_of(tensor) in kept:
            return tensor
        if size > tensor.untyped_storage().nbytes():
            return tensor
        # With the same strides, which may decide on the kernels of the backward pass.
        copy = torch.empty_like(tensor, device="cpu", pin_memory=pin)
        copy.copy_(tensor, non_blocking=pin)
        return tensor.device, copy

    def unpack(packed):
        if isinstance(packed, torch.Tensor):
            return packed
        device, copy = packed
        return torch.empty_like(copy, device=device).copy_(copy, non_blocking=pin)

    return torch.autograd.graph.saved_tensors_hooks(pack, unpack)


def _host_storage_of(tensor):
    """The identity of the storage of a tensor, or None; saved tensors are other objects than those they come from."""
    try:
        return tensor.untyped_storage()._cdata
    except (AttributeError, RuntimeError, ValueError, NotImplementedError):
        return None
