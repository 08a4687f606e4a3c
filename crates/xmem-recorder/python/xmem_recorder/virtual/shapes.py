"""Tensors of few integers that processes send each other: pipelines send the shapes of activations in them
(deepspeed/runtime/pipe/engine.py, `_send_tensor_meta`)."""

from . import known

# Bytes up to which integers count as shapes, and not as data.
MAX_BYTES = 1 << 12


def are_in(tensor):
    """Returns whether a tensor may hold shapes."""
    return not (tensor.is_floating_point() or tensor.is_complex()) and tensor.nbytes <= MAX_BYTES


def read(torch, tensor):
    """The elements in the memory of a tensor, as lists."""
    return _beside(torch, lambda: _on_host(tensor).tolist())


def write(torch, tensor, elements):
    """Writes elements into the memory of a tensor, which are known then."""
    _beside(torch, lambda: _on_host(tensor).copy_(torch.tensor(elements, dtype=tensor.dtype, device="cpu")))
    if tensor.is_cuda:
        known.keep(tensor, known.KNOWN)


def _on_host(tensor):
    return known.alias(tensor) if tensor.is_cuda else tensor


def _beside(torch, function):
    """Calls a function beside the job."""
    with torch._C.DisableTorchFunction(), torch.no_grad():
        return known.unrecorded(function)
