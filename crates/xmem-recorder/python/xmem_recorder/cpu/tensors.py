"""Methods that move tensors, and the devices that tensors report."""

from ..patching import called_by_torch, calling_module, is_like_script, replace
from ..ranks import place
from . import devices, placement, places, redirected, tensor_types


def install(torch):
    """Wraps `Tensor.to`, `.cuda()`, `.cpu()` and the like."""
    tensor = torch.Tensor
    replace(tensor, "to", lambda original: _to(torch, original))
    replace(tensor, "cuda", lambda original: _cuda(torch))
    replace(tensor, "cpu", _cpu)
    replace(tensor, "clone", _clone)
    replace(tensor, "type", lambda original: _type(torch, original))
    replace(tensor, "pin_memory", lambda original: _pin_memory)
    replace(tensor, "record_stream", lambda original: lambda self, stream: None)
    replace(torch._C._nn, "_parse_to", lambda original: _parse_to(torch, original))
    _install_properties(torch)
    for storage in (torch.UntypedStorage, torch.TypedStorage):
        if hasattr(storage, "cuda"):
            storage.cuda = lambda self, *_args, **_kwargs: self
        if hasattr(storage, "pin_memory"):
            storage.pin_memory = lambda self, *_args, **_kwargs: self


def _to(torch, original):
    def to(self, *args, **kwargs):
        target, args, kwargs = _target(torch, args, kwargs)
        if target == places.DEVICE:
            redirected.count("Tensor.to")
            return placement.moves_to_device(self, lambda t: original(t, *args, **kwargs))
        if target == places.HOST and not _called_by_torch_itself():
            return placement.moves_to_host(self, lambda t: original(t, *args, **kwargs))
        return original(self, *args, **kwargs)

    return to


def _called_by_torch_itself():
    """Returns whether torch's own code calls, which moves tensors to the CPU where it sees others. A
    module is an exception: it passes on the script's request."""
    module = calling_module(2)
    return module.startswith("torch.") and module != "torch.nn.modules.module" and not is_like_script(module)


def _target(torch, args, kwargs):
    """The target of `to(*args, **kwargs)`, and the arguments with the CPU in place of CUDA."""
    first = args[0] if args else None
    device = kwargs.get("device", first)
    if isinstance(device, torch.Tensor) or "other" in kwargs:
        other = kwargs.get("other", device)
        on_device = isinstance(other, torch.Tensor) and places.known(other) == places.DEVICE
        return (places.DEVICE if on_device else None), args, kwargs
    if isinstance(device, torch.dtype) or device is None:
        return None, args, kwargs
    if devices.is_cuda(device, torch):
        if "device" in kwargs:
            kwargs = {**kwargs, "device": "cpu"}
        else:
            args = ("cpu", *args[1:])
        return places.DEVICE, args, kwargs
    return (places.HOST if devices.is_cpu(device, torch) else None), args, kwargs


def _parse_to(torch, original):
    """Wraps the parser of a module's `to(0)`: without a GPU, torch refuses its number."""

    def parse_to(*args, **kwargs):
        def named(value):
            is_number = isinstance(value, int) and not isinstance(value, bool)
            return torch.device("cuda", value) if is_number else value

        args = tuple(named(value) if at == 0 else value for at, value in enumerate(args))
        if "device" in kwargs:
            kwargs = {**kwargs, "device": named(kwargs["device"])}
        return original(*args, **kwargs)

    return parse_to


def _cuda(torch):
    def cuda(self, device=None, non_blocking=False, memory_format=None):
        redirected.count("Tensor.cuda")
        if device is not None:
            devices.is_cuda(device, torch)

        def convert(tensor):
            if memory_format is None or memory_format is torch.preserve_format:
                return tensor
            return tensor.contiguous(memory_format=memory_format)

        return placement.moves_to_device(self, convert)

    return cuda


def _cpu(original):
    def cpu(self, *args, **kwargs):
        return placement.moves_to_host(self, lambda t: original(t, *args, **kwargs))

    return cpu


def _clone(original):
    def clone(self, *args, **kwargs):
        result = original(self, *args, **kwargs)
        return placement.made_on_host(result) if places.known(self) == places.HOST else result

    return clone


def _type(torch, original):
    def type_(self, dtype=None, non_blocking=False, **kwargs):
        if dtype is None and not called_by_torch() and places.looks_like_device(self):
            return original(self).replace("torch.", "torch.cuda.")
        host = tensor_types.on_host(dtype)
        if host is None:
            return original(self, dtype, non_blocking, **kwargs)
        redirected.count("Tensor.type")
        return placement.moves_to_device(self, lambda t: original(t, host, non_blocking))

    return type_


def _pin_memory(self, device=None):
    redirected.count("Tensor.pin_memory")
    places.is_on_host(self)
    return self


def _install_properties(torch):
    """Makes tensors report `cuda:0` to the script, and their real device to torch itself."""
    tensor = torch.Tensor
    true_device = tensor.device.__get__
    true_get_device = tensor.get_device
    gpu = torch.device("cuda", place.device())

    def device(self):
        if called_by_torch() or not places.looks_like_device(self):
            return true_device(self)
        return gpu

    def is_cuda(self):
        if _called_by_old_scaler():
            return places.used()
        if _called_by_old_casts():
            return places.looks_like_device(self)
        return not called_by_torch() and places.looks_like_device(self)

    def is_cpu(self):
        there = true_device(self).type == "cpu"
        return there and (called_by_torch() or not places.looks_like_device(self))

    def get_device(self):
        if called_by_torch() or not places.looks_like_device(self):
            return true_get_device(self)
        return place.device()

    tensor.device = property(device)
    tensor.is_cuda = property(is_cuda)
    tensor.is_cpu = property(is_cpu)
    tensor.get_device = get_device


def _called_by_old_casts():
    """Returns whether `custom_fwd(cast_inputs=…)` asks which tensors it casts: before 2.4 those of CUDA."""
    return calling_module(2) == "torch.cuda.amp.autocast_mode"


def _called_by_old_scaler():
    """Returns whether the gradient scaler calls: before 2.3 it asserts CUDA tensors."""
    return calling_module(2) == "torch.cuda.amp.grad_scaler"
