"""Runs a script as it is, and writes the peaks that PyTorch counts until it ends: counted.py PEAKS.json SCRIPT [ARGUMENT…]

On a virtual GPU nothing is computed. COUNTED_VALUES says what stands for values where a script needs some:

- nothing: what is in memory. Only checks of arguments by torch.distributions hold;
- known: random integers are in their range, deviations are positive, and no batch is one of packed sequences;
- computed: the host computes every operator, too, on the memory of the device, which is ordinary memory. The references that
  this keeps for longer may change peak reserved by a segment or two.

Nothing of the recorder is used. What is allocated is what PyTorch's CUDA build asks for.
"""

import atexit
import ctypes
import json
import os
import runpy
import sys
import warnings

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

aten = torch.ops.aten
highest = {"allocated": 0, "reserved": 0}
reset = torch.cuda.memory.reset_peak_memory_stats


def look():
    for name, counted in (
        ("allocated", torch.cuda.max_memory_allocated()),
        ("reserved", torch.cuda.max_memory_reserved()),
    ):
        highest[name] = max(highest[name], counted)


def reset_peaks(*args, **kwargs):
    look()
    return reset(*args, **kwargs)


def write(path, owner):
    # Forked processes of data loaders inherit this function.
    if os.getpid() == owner and torch.cuda.is_initialized():
        look()
        with open(path, "w") as file:
            json.dump({**highest, "torch": torch.__version__}, file)


# ---------------------------------------------------------------------------------------------
# Known values
# ---------------------------------------------------------------------------------------------


def let_checks_hold():
    truth = torch.Tensor.__bool__

    def holds(self):
        caller = sys._getframe(1).f_code.co_filename
        return self.is_cuda and os.path.join("torch", "distributions") in caller or truth(self)

    torch.Tensor.__bool__ = holds


def know_values():
    to_host, draw = torch.Tensor.cpu, torch.normal

    def cpu(self, *args, **kwargs):
        copied = to_host(self, *args, **kwargs)
        return torch.zeros_like(copied) if self.is_cuda and copied.dtype == torch.int64 else copied

    def normal(mean, std, *args, **kwargs):
        if not isinstance(std, torch.Tensor) or not std.is_cuda:
            return draw(mean, std, *args, **kwargs)
        std.min().ge(0)
        return torch.empty_like(mean).normal_().mul_(std).add_(mean)

    torch.Tensor.cpu, torch.normal = cpu, normal
    try:
        from transformers import masking_utils
    except ImportError:
        return
    find = masking_utils.find_packed_sequence_indices
    masking_utils.find_packed_sequence_indices = lambda *args, **kwargs: (find(*args, **kwargs), None)[1]


# ---------------------------------------------------------------------------------------------
# Computed values
# ---------------------------------------------------------------------------------------------


def on_host(value):
    """A tensor of the host on the memory of a tensor of the device; other values as the host's operators take them."""
    if isinstance(value, torch.device):
        return torch.device("cpu") if value.type == "cuda" else value
    if isinstance(value, torch.Generator):
        return None
    if not isinstance(value, torch.Tensor) or not value.is_cuda:
        return value
    storage = value.untyped_storage()
    if not storage.nbytes() or not storage.data_ptr():
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)
    memory = (ctypes.c_char * storage.nbytes()).from_address(storage.data_ptr())
    bytes_ = torch.frombuffer(memory, dtype=torch.uint8).untyped_storage()
    found = torch.empty(0, dtype=value.dtype).set_(bytes_, value.storage_offset(), value.shape, value.stride())
    return found.conj() if value.is_conj() else found


def on_device(value):
    if not isinstance(value, torch.Tensor):
        return value
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="cuda")


def batch_norm_backward(inputs, gradient, weight, mean, variance, saved_mean, saved, epsilon, reserve):
    arguments = (gradient, inputs, weight, mean, variance, saved_mean, saved, True, epsilon, [True, True, True])
    return aten.native_batch_norm_backward(*arguments)


def attention(query, key, value, bias=None, causal=False, scale=None):
    groups = {"enable_gqa": True} if query.shape[1] != key.shape[1] else {}
    attend = torch.nn.functional.scaled_dot_product_attention
    return (attend(query, key, value, attn_mask=bias, is_causal=causal, scale=scale, **groups),)


def efficient(query, key, value, bias, with_sums, dropout=0.0, causal=False, scale=None):
    return attention(query, key, value, bias, causal, scale)


def flash(query, key, value, dropout=0.0, causal=False, with_mask=False, scale=None):
    return attention(query, key, value, None, causal, scale)


# Operators of the host for those of CUDA, with the same leading results.
INSTEAD = {
    aten.cudnn_batch_norm.default: aten.native_batch_norm,
    aten.cudnn_batch_norm_backward.default: batch_norm_backward,
    aten._scaled_dot_product_efficient_attention.default: efficient,
    aten._scaled_dot_product_flash_attention.default: flash,
}
# Operators whose results have sizes that they read from the device: the host computes first.
SIZED = {
    aten._unique2.default,
    aten.unique_consecutive.default,
    aten.unique_dim.default,
    aten.bincount.default,
    aten.repeat_interleave.Tensor,
    aten.normal.Tensor_Tensor,
}


def nonzero(mask):
    found = torch.nonzero(on_host(mask))
    result = torch.empty((mask.dim(), found.shape[0]), dtype=torch.int64, device=mask.device)
    if result.numel():
        on_host(result).copy_(found.t())
    return result.t()


class Computed(TorchDispatchMode):
    """Computes on the host what the device is asked to compute; results of operators that the host lacks are zeros."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        values = tree_leaves((args, kwargs))
        tensors = [value for value in values if isinstance(value, torch.Tensor)]
        is_plain = all(type(tensor) in (torch.Tensor, torch.nn.Parameter) for tensor in tensors)
        devices = [value for value in values if isinstance(value, torch.device)]
        is_cuda = any(tensor.is_cuda for tensor in tensors) or any(device.type == "cuda" for device in devices)
        writes = func._schema.is_mutable
        is_view = not writes and any(result.alias_info is not None for result in func._schema.returns)
        if not is_cuda or not is_plain or is_view or func is aten._local_scalar_dense.default:
            return func(*args, **kwargs)
        host_args, host_kwargs = tree_map(on_host, (args, kwargs))
        host_kwargs.pop("generator", None)
        if "pin_memory" in host_kwargs:
            host_kwargs["pin_memory"] = None
        compute = INSTEAD.get(func, func)
        results = None
        if func in SIZED or "nms" in func._schema.name:
            results = compute(*host_args, **host_kwargs)
        else:
            try:
                returned = func(*args, **kwargs)
            except torch.OutOfMemoryError:
                raise
            except (RuntimeError, IndexError):
                if writes:
                    raise
                results = compute(*host_args, **host_kwargs)
        if results is not None:
            returned = tree_map(on_device, results)
        places = [] if writes else [on_host(leaf) for leaf in tree_leaves(returned) if is_filled(leaf)]
        try:
            if results is None:
                results = compute(*host_args, **host_kwargs)
            for place, result in zip(places, filter(is_filled, tree_leaves(results))):
                if place.shape == result.shape:
                    place.copy_(result)
        except Exception:
            for place in places:
                place.zero_()
        return returned


def is_filled(value):
    return isinstance(value, torch.Tensor) and value.numel() > 0


def compute_values():
    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library.impl("nonzero", nonzero, "CUDA")
    Computed().__enter__()
    return library


def main():
    peaks, script = sys.argv[1:3]
    torch.cuda.reset_peak_memory_stats = torch.cuda.memory.reset_peak_memory_stats = reset_peaks
    atexit.register(write, peaks, os.getpid())
    let_checks_hold()
    values = os.environ.get("COUNTED_VALUES")
    if values == "known":
        know_values()
    library = compute_values() if values == "computed" else None
    sys.argv = sys.argv[2:]
    # As Python does for a script that is named on the command line.
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    runpy.run_path(script, run_name="__main__")
    del library


if __name__ == "__main__":
    main()
