"""The places of tensors as the script sees them: all are on the CPU, and some would be on the GPU.

A tensor is remembered by its object. One made without a device, or returned by a data loader, is remembered as the
host's. For results of operators only gradient functions give evidence.
"""

import collections.abc
import weakref

DEVICE = "device"
HOST = "host"


class _Places:
    """The places that are certain."""

    def __init__(self):
        # By the id of a tensor: a weak reference to it, and its place.
        self.by_id = {}
        # True once the script has put a tensor on the GPU.
        self.used = False


_places = _Places()
_torch = None


def install(torch):
    """Initializes the module, before any function is wrapped."""
    global _torch
    _torch = torch


def use():
    """Notes that the script uses the GPU from here on."""
    _places.used = True


def used():
    """Returns whether the script has put a tensor on the GPU."""
    return _places.used


def remember(tensor, place):
    """Notes the place of a tensor."""
    key = id(tensor)

    def forget(_reference, key=key):
        _places.by_id.pop(key, None)

    try:
        _places.by_id[key] = (weakref.ref(tensor, forget), place)
    except TypeError:
        pass


def _place(tensor):
    entry = _places.by_id.get(id(tensor))
    if entry is not None and entry[0]() is tensor:
        return entry[1]
    return None


def known(tensor):
    """The place of a tensor if it is certain: from the tensor, its base, or its gradient function."""
    place = _place(tensor)
    if place is None and tensor._base is not None:
        place = _place(tensor._base)
    if place is None and _places.used and tensor.grad_fn is not None:
        place = DEVICE
    return place


def looks_like_device(tensor):
    """Returns whether the script sees a tensor on the GPU. A tensor of unknown place is a result of
    operators, which run on the GPU once the script has put a tensor there."""
    return _places.used and known(tensor) != HOST


def is_on_host(value):
    """Remembers a tensor, or those in lists and dictionaries, as the host's."""
    if isinstance(value, _torch.Tensor):
        if _place(value) is None and not isinstance(value, _torch.nn.Parameter):
            remember(value, HOST)
    elif isinstance(value, (list, tuple)):
        for item in value:
            is_on_host(item)
    elif isinstance(value, collections.abc.Mapping):
        for item in value.values():
            is_on_host(item)


def local(tensor):
    """The part of a DTensor that is of this process (torch/distributed/tensor/_api.py); any other tensor itself."""
    return getattr(tensor, "_local_tensor", tensor)
