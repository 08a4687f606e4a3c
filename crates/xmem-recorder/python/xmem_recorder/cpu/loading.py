"""Checkpoints and data loaders."""

from ..patching import replace
from . import devices, placement, places, redirected


def install(torch):
    """Wraps `torch.load` and the iterators of data loaders."""
    replace(torch, "load", lambda original: _load(torch, original))
    iterator = torch.utils.data.dataloader._BaseDataLoaderIter
    replace(iterator, "__next__", _next)


def _next(original):
    def next_batch(self):
        batch = original(self)
        places.is_on_host(batch)
        return batch

    return next_batch


def _load(torch, original):
    def load(f, map_location=None, *args, **kwargs):
        host, on_device = _host_location(torch, map_location)
        if not on_device:
            return original(f, host, *args, **kwargs)
        redirected.count("torch.load(map_location='cuda')")
        placement.use_device()
        return _each_tensor(torch, original(f, host, *args, **kwargs))

    return load


def _host_location(torch, location):
    """The location to load to instead, and whether CUDA was meant."""
    if location is None:
        return "cpu", False
    if isinstance(location, dict):
        cuda = any(devices.is_cuda(target, torch) for target in location.values())
        return "cpu", cuda
    if callable(location):
        return location, False
    if devices.is_cuda(location, torch):
        return "cpu", True
    return location, False


def _each_tensor(torch, value):
    """Marks the tensors of a checkpoint, and copies those in the memory of a mapped file."""
    if isinstance(value, torch.Tensor):
        return placement.made_on_device(value)
    if isinstance(value, dict):
        for key in list(value):
            value[key] = _each_tensor(torch, value[key])
    elif isinstance(value, list):
        value[:] = [_each_tensor(torch, item) for item in value]
    return value
