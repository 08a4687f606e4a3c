"""The host's memory and time, where a model is built on the host, or loaded, and moved to a virtual GPU.

Large parameters are not initialized on the host, and large weights from files (`weights`) not converted: their
pages are never touched, so that they take no memory. No value of theirs would be used on the device. Allocations
stay as they are.
"""

import bisect

from ..patching import replace

# Bytes from which on a tensor counts as large.
LARGE = 1 << 20

RANDOM_METHODS = (
    "bernoulli_",
    "cauchy_",
    "exponential_",
    "geometric_",
    "log_normal_",
    "normal_",
    "random_",
    "uniform_",
)
METHODS_OF_PARAMETERS = ("copy_", "fill_", "zero_")
CONVERSIONS = {
    "bfloat16": "bfloat16",
    "double": "float64",
    "float": "float32",
    "half": "float16",
}

_torch = None
_skipped = 0
# Mapped files of weights: the first address and the end, by address.
_mapped = []


def skipped():
    """The number of initializations that were skipped."""
    return _skipped


def install(torch):
    """Wraps `torch.nn.init`; returns what to do instead of other functions, by function.

    Each takes the arguments and returns the result, or None to call the function.
    """
    global _torch
    _torch = torch
    for name in dir(torch.nn.init):
        if name.endswith("_") and not name.startswith("_"):
            replace(torch.nn.init, name, _unless_large)
    instead = {}
    for name in RANDOM_METHODS:
        instead[getattr(torch.Tensor, name)] = _initialize
    for name in METHODS_OF_PARAMETERS:
        instead[getattr(torch.Tensor, name)] = _write_parameter
    for name, dtype in CONVERSIONS.items():
        dtype = getattr(torch, dtype)
        instead[getattr(torch.Tensor, name)] = lambda tensor, *_, d=dtype, **__: _convert(tensor, d)
    instead[torch.Tensor.to] = _to
    return instead


def is_of_file(storage):
    """Remembers that a storage is a mapped file of weights."""
    bisect.insort(_mapped, (storage.data_ptr(), storage.data_ptr() + storage.nbytes()))


def _is_large(tensor):
    """Returns whether a tensor is floating-point and large, in the host's memory."""
    return (
        isinstance(tensor, _torch.Tensor)
        # Parameters of lazy modules have no size before the first call.
        and not _torch.nn.parameter.is_lazy(tensor)
        and tensor.is_floating_point()
        and tensor.numel() * tensor.element_size() >= LARGE
        and tensor.device.type == "cpu"
        and tensor.layout is _torch.strided
    )


def _is_large_parameter(tensor):
    return isinstance(tensor, _torch.nn.Parameter) and _is_large(tensor)


def _is_large_weight(tensor):
    """Returns whether a large tensor is a parameter, or comes from a file of weights."""
    if not _is_large(tensor):
        return False
    if isinstance(tensor, _torch.nn.Parameter) or hasattr(tensor, "_xmem_weight"):
        return True
    address = tensor.untyped_storage().data_ptr()
    at = bisect.bisect_right(_mapped, (address, 1 << 64)) - 1
    return at >= 0 and address < _mapped[at][1]


def _skip(result):
    global _skipped
    _skipped += 1
    return result


def _unless_large(original):
    def initialize(tensor, *args, **kwargs):
        if _is_large(tensor):
            return _skip(tensor)
        return original(tensor, *args, **kwargs)

    return initialize


def _initialize(tensor, *_args, **_kwargs):
    return _skip(tensor) if _is_large(tensor) else None


def _write_parameter(tensor, *args, **kwargs):
    """Copies to a parameter of the host, and weights of another dtype to the device: torch would convert them on
    the host (aten/src/ATen/native/cuda/Copy.cu, `copy_kernel_cuda`)."""
    if _is_large_parameter(tensor):
        return _skip(tensor)
    source = args[0] if args else None
    if isinstance(source, _torch.Tensor) and tensor.is_cuda and not _is_asynchronous(args, kwargs):
        converted = _convert(source, tensor.dtype)
        return None if converted is None else tensor.copy_(converted)
    return None


def _is_asynchronous(args, kwargs):
    return kwargs.get("non_blocking") or len(args) > 1 and args[1]


def _to(tensor, *args, **kwargs):
    """Converts weights that stay on the host, or that are copied to the device afterwards."""
    if not _is_large_weight(tensor):
        return None
    try:
        device, dtype, non_blocking, memory_format = _torch._C._nn._parse_to(*args, **kwargs)
    except (RuntimeError, TypeError):
        return None
    if dtype is None:
        return None
    if device is None or device.type == "cpu":
        return _convert(tensor, dtype)
    if non_blocking or memory_format is not None:
        return None
    converted = _convert(tensor, dtype)
    return None if converted is None else converted.to(device)


def _convert(tensor, dtype):
    if not _is_large_weight(tensor) or tensor.dtype == dtype or tensor.requires_grad and _torch.is_grad_enabled():
        return None
    converted = _torch.empty_like(tensor, dtype=dtype, requires_grad=False)
    # Views of it are read as they are.
    converted._xmem_weight = True
    return _skip(converted)
