"""The host's memory and time, where a model is built on the host and moved to a virtual GPU.

Large parameters are not initialized on the host: their pages are never touched, so that they take no
memory. No value of theirs would be used on the device. Allocations stay as they are.
"""

from .patching import replace

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


def _is_large(tensor):
    """Returns whether a tensor is floating-point and large, in the host's memory."""
    return (
        isinstance(tensor, _torch.Tensor)
        and tensor.is_floating_point()
        and tensor.numel() * tensor.element_size() >= LARGE
        and tensor.device.type == "cpu"
        and tensor.layout is _torch.strided
    )


def _is_large_parameter(tensor):
    return isinstance(tensor, _torch.nn.Parameter) and _is_large(tensor)


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


def _write_parameter(tensor, *_args, **_kwargs):
    return _skip(tensor) if _is_large_parameter(tensor) else None


def _to(tensor, *args, **kwargs):
    """Converts parameters that stay on the host."""
    if not _is_large_parameter(tensor):
        return None
    try:
        device, dtype, _, _ = _torch._C._nn._parse_to(*args, **kwargs)
    except (RuntimeError, TypeError):
        return None
    if dtype is None or device is not None and device.type != "cpu":
        return None
    return _convert(tensor, dtype)


def _convert(tensor, dtype):
    if not _is_large_parameter(tensor) or tensor.dtype == dtype:
        return None
    return _skip(_torch.empty_like(tensor, dtype=dtype))
