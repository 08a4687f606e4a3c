"""Which tensors would be on the GPU, and the marks that say so in the trace.

Every tensor really is on the CPU. What a script moves to CUDA, or makes there, is remembered with
the tensor object, and a mark in the trace names its storage: a `user_annotation` of no length,
`xmem::to_device ADDRESS BYTES`. What it makes without naming a device, and what a data loader
yields, is remembered as the host's. Of results of operators nothing is known but their gradients.
"""

import collections.abc
import weakref

from . import session

_torch = None
_recorder = None
_clone = None
_device_of = None
_places = {}
_used = False

DEVICE = "device"
HOST = "host"


def install(torch, recorder):
    """Makes the module ready, before anything is wrapped; nothing is on the GPU yet."""
    global _torch, _recorder, _clone, _device_of
    _torch = torch
    _recorder = recorder
    _clone = torch.Tensor.clone
    _device_of = torch.Tensor.device.__get__


def used():
    """Whether the script has put anything on the GPU."""
    return _used


def _remember(tensor, place):
    key = id(tensor)

    def forget(_reference, key=key):
        _places.pop(key, None)

    try:
        _places[key] = (weakref.ref(tensor, forget), place)
    except TypeError:
        pass


def _place(tensor):
    entry = _places.get(id(tensor))
    if entry is not None and entry[0]() is tensor:
        return entry[1]
    return None


def known(tensor):
    """Where a tensor is, if that is certain: from the tensor, from what it is a view of, or from
    what it was computed from."""
    place = _place(tensor)
    if place is None and tensor._base is not None:
        place = _place(tensor._base)
    if place is None and _used and tensor.grad_fn is not None:
        place = DEVICE
    return place


def looks_like_device(tensor):
    """What the script is told of a tensor. What is not known to be the host's is a result of
    operators, which run on the GPU once the script has put something there."""
    return _used and known(tensor) != HOST


def _is_plain(tensor):
    """Whether it has a storage of its own on the CPU: no meta, sparse or fake tensor."""
    try:
        return tensor.layout is _torch.strided and _device_of(tensor).type == "cpu"
    except Exception:
        return False


def _is_foreign(tensor):
    """Whether the memory is not PyTorch's: NumPy's, a mapped file's, another process's. No event
    in the trace tells of it."""
    try:
        return not tensor.untyped_storage().resizable()
    except Exception:
        return False


def _mark(what, tensor):
    storage = tensor.untyped_storage()
    if storage.nbytes():
        _recorder.mark(f"xmem::{what} {storage.data_ptr():#x} {storage.nbytes()}")


def begin():
    """The script works with a GPU from here on: what it makes is recorded."""
    global _used
    _recorder.begin()
    _used = True


def moves_to_device(source, convert):
    """The tensor on the GPU that `convert(source)` makes of one that may be on the host."""
    begin()
    result = convert(source)
    if not isinstance(result, _torch.Tensor) or not _is_plain(result):
        return result
    if result is source or _shares(result, source):
        place = known(source)
        if place == DEVICE or place is None and _is_result_of_forward(source):
            return result
        if not _can_stay(source):
            # CUDA copies, and the two are freed independently. Gradients flow through the copy.
            result = _clone(result)
    _mark("to_device", result)
    _remember(result, DEVICE)
    if isinstance(source, _torch.nn.Parameter):
        _remember(source, DEVICE)
    return result


def _is_result_of_forward(tensor):
    """In a forward, everything that is PyTorch's own is taken to be on the GPU already."""
    return _recorder.inside_module() and not _is_foreign(tensor)


def _can_stay(tensor):
    """A parameter need not be copied: its module gives the old memory back at once."""
    is_parameter = isinstance(tensor, _torch.nn.Parameter)
    return is_parameter and _is_whole(tensor) and not _is_foreign(tensor)


def made_on_device(value):
    """Marks what was made on the GPU since `begin`, if it is a tensor."""
    if not isinstance(value, _torch.Tensor) or not _is_plain(value):
        return value
    if _is_foreign(value):
        value = _clone(value)
    _mark("on_device", value)
    _remember(value, DEVICE)
    return value


def moves_to_host(source, convert):
    """The tensor on the host that `convert(source)` makes of one that may be on the GPU."""
    result = convert(source)
    if not _used or not isinstance(result, _torch.Tensor) or not _is_plain(result):
        return result
    if known(source) == HOST:
        return result
    if result is source or _shares(result, source):
        result = _clone(result)
    _mark("to_host", result)
    _remember(result, HOST)
    if isinstance(source, _torch.nn.Parameter):
        _remember(source, HOST)
    return result


def is_on_host(value):
    """Remembers that a tensor is on the host, or those in lists and dictionaries."""
    if isinstance(value, _torch.Tensor):
        if _place(value) is None and not isinstance(value, _torch.nn.Parameter):
            _remember(value, HOST)
    elif isinstance(value, (list, tuple)):
        for item in value:
            is_on_host(item)
    elif isinstance(value, collections.abc.Mapping):
        for item in value.values():
            is_on_host(item)


def _shares(one, other):
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


def _is_whole(tensor):
    return tensor.numel() * tensor.element_size() == tensor.untyped_storage().nbytes()
