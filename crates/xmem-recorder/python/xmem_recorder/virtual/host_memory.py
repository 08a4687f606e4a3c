"""The host's memory and time, where a model is built on the host, or loaded, and moved to a virtual GPU.

Large parameters are not initialized on the host, and large weights from files (`weights`) not converted: their
pages are never touched, so that they take no memory. No value of theirs would be used on the device. Allocations
stay as they are, and so do random numbers: as many are skipped or drawn as the initialization would have drawn, for models
that are not very large, so that what the script draws afterwards, such as the order of its batches, is that of a run on a GPU.
"""

import bisect

from .. import session
from ..patching import replace
from . import known, random_numbers

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
# Methods that functions of `torch.nn.init` call, by a part of their names.
DRAWS = {"uniform": "uniform_", "trunc_normal": "trunc_normal_", "normal": "normal_", "orthogonal": "normal_"}
# The one that draws again what it rejects, so that the values count; elements up to which it is called.
REJECTS = "trunc_normal_"
MAX_REJECTED = 1 << 24
# Random numbers that are drawn at once: less than make a large tensor, and a multiple of the 16 that `normal_` makes
# together (aten/src/ATen/native/cpu/DistributionTemplates.h, `normal_fill`).
MAX_AT_ONCE = 1 << 16
# Random numbers that are drawn for initializations of a script, and those that are skipped in the time of one: about two
# seconds.
MAX_DRAWN = 200_000_000
SKIPPED_FOR_ONE = 10
METHODS_OF_PARAMETERS = ("copy_", "fill_", "zero_")
CONVERSIONS = {
    "bfloat16": "bfloat16",
    "double": "float64",
    "float": "float32",
    "half": "float16",
}

_torch = None
_skipped = 0
_drawn = 0
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
            method = next((method for part, method in DRAWS.items() if part in name), None)
            replace(torch.nn.init, name, lambda original, m=method: _unless_large(original, m))
    instead = {}
    for name in RANDOM_METHODS:
        instead[getattr(torch.Tensor, name)] = _initialize_by(name)
    for name in METHODS_OF_PARAMETERS:
        instead[getattr(torch.Tensor, name)] = _write_parameter
    for name, dtype in CONVERSIONS.items():
        dtype = getattr(torch, dtype)
        instead[getattr(torch.Tensor, name)] = lambda tensor, *_, d=dtype, **__: _convert(tensor, d)
    instead[torch.Tensor.to] = _to
    for function in (torch.Tensor.data.__get__, torch.Tensor.detach):
        instead[function] = lambda tensor, *_, f=function: _same_weight(tensor, f)
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


def _unless_large(original, method):
    """Wraps a function of `torch.nn.init`, which draws random numbers by a method, if by any."""

    def initialize(tensor, *args, **kwargs):
        if _is_large(tensor):
            if method == REJECTS:
                if tensor.numel() <= MAX_REJECTED:
                    with _torch._C.DisableTorchFunction():
                        return original(tensor, *args, **kwargs)
            elif method is not None:
                generator = kwargs.get("generator")
                _draw(tensor, method, (), {} if generator is None else {"generator": generator})
            return _skip(tensor)
        return original(tensor, *args, **kwargs)

    return initialize


def _initialize_by(method):
    def initialize(tensor, *args, **kwargs):
        if not _is_large(tensor):
            return None
        _draw(tensor, method, args, kwargs)
        return _skip(tensor)

    return initialize


def _draw(tensor, method, args, kwargs):
    """Skips or draws as many random numbers as a method would draw for a tensor."""
    global _drawn
    left = tensor.numel()
    numbers = random_numbers.of(_torch, method, tensor)
    _drawn += left if numbers is None else numbers // SKIPPED_FOR_ONE
    if _drawn > MAX_DRAWN:
        session.note("random numbers of the script are others than on a GPU: weights of a large model are not drawn")
        return
    with _torch._C.DisableTorchFunction(), _torch.no_grad():
        generator = kwargs.get("generator") or _torch.default_generator
        if numbers is None or not known.unrecorded(random_numbers.skip, generator, numbers):
            known.unrecorded(_draw_in_parts, tensor.dtype, left, method, args, kwargs)


def _draw_in_parts(dtype, left, method, args, kwargs):
    scratch = _torch.empty(2 * MAX_AT_ONCE, dtype=dtype, device="cpu")
    while left:
        # The last part is not shorter than others: `normal_` draws in another way for a few.
        count = MAX_AT_ONCE if left >= 2 * MAX_AT_ONCE else left
        getattr(scratch[:count], method)(*args, **kwargs)
        left -= count


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


def _same_weight(tensor, function):
    """Calls a function that gives the same elements, which are no parameter, and remembers that they are weights."""
    if not _is_large_parameter(tensor):
        return None
    with _torch._C.DisableTorchFunction():
        same = function(tensor)
    same._xmem_weight = True
    return same


def _convert(tensor, dtype):
    if not _is_large_weight(tensor) or tensor.dtype == dtype or tensor.requires_grad and _torch.is_grad_enabled():
        return None
    converted = _torch.empty_like(tensor, dtype=dtype, requires_grad=False)
    # Views of it are read as they are.
    converted._xmem_weight = True
    return _skip(converted)
