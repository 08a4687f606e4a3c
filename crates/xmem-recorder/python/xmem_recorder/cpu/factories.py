"""Functions that make tensors on a device: they run on the CPU and leave a mark in the trace."""

import enum

from ..patching import replace
from . import devices, placement, places, redirected

# Functions with a `device` argument that torch does not list as device constructors.
OTHERS = (
    "empty_like",
    "full_like",
    "normal",
    "ones_like",
    "rand_like",
    "randint_like",
    "randn_like",
    "zeros_like",
)
METHODS = ("new_empty", "new_empty_strided", "new_full", "new_ones", "new_tensor", "new_zeros")


def install(torch):
    """Wraps every factory, and the functions that set their default device."""
    constructors = set(torch.utils._device._device_constructors())
    for owner in (torch, torch.fft, torch.nested):
        for name in dir(owner):
            function = getattr(owner, name, None)
            try:
                listed = function in constructors
            except TypeError:
                continue
            if listed or owner is torch and name in OTHERS:
                method = Method.YES if name.endswith("_like") else Method.NO
                replace(owner, name, lambda original, m=method: _factory(torch, original, m))
    for name in METHODS:
        replace(torch.Tensor, name, lambda original: _factory(torch, original, Method.YES))
    replace(torch, "from_numpy", lambda original: _factory(torch, original, Method.NO))
    _install_contexts(torch, constructors)
    _keep_scriptable(torch)


def _made_on_host(tensor, method):
    """Remembers a new tensor as the host's; that of a method is where the method's tensor is."""
    if method is Method.NO:
        places.is_on_host(tensor)
    return tensor


def _is_like_host(torch, args, kwargs):
    """Returns whether the tensor that a method makes a new one of is certainly the host's."""
    like = args[0] if args else kwargs.get("input")
    return kwargs.get("device") is None and isinstance(like, torch.Tensor) and places.known(like) == places.HOST


class Method(enum.Enum):
    """The kind of a factory: a method of an existing tensor, or a function."""

    NO = enum.auto()
    YES = enum.auto()


def _factory(torch, original, method):
    def make(*args, **kwargs):
        is_pinned = kwargs.pop("pin_memory", False)
        if is_pinned:
            redirected.count("pin_memory=True")
        if not devices.is_cuda(kwargs.get("device"), torch):
            if is_pinned or method is Method.YES and _is_like_host(torch, args, kwargs):
                # Pinned memory is the host's, and a new tensor is where the one is that it is like.
                return placement.made_on_host(original(*args, **kwargs))
            return _made_on_host(original(*args, **kwargs), method)
        redirected.count("device='cuda' in a factory")
        placement.use_device()
        kwargs["device"] = "cpu"
        return placement.made_on_device(original(*args, **kwargs))

    return make


def _install_contexts(torch, constructors):
    """Replaces the context of `with torch.device("cuda"):` and `torch.set_default_device("cuda")` by one
    that keeps the device and marks new tensors."""
    module = torch.utils._device
    original = module.DeviceContext

    class DeviceContext(original):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            if self.device.type != "cuda":
                return super().__torch_function__(func, types, args, kwargs)
            if func not in constructors or kwargs.get("device") is not None:
                return func(*args, **kwargs)
            redirected.count("default device")
            placement.use_device()
            return placement.made_on_device(func(*args, **kwargs))

    module.DeviceContext = DeviceContext


def _keep_scriptable(torch):
    """Registers the wrappers for TorchScript, which looks up builtin functions by identity."""
    table = getattr(torch.jit._builtins, "_builtin_table", None)
    if table is None:
        return
    for name in dir(torch):
        function = getattr(torch, name, None)
        original = getattr(function, "__wrapped__", None)
        if original is not None and id(original) in table:
            table[id(function)] = table[id(original)]
