"""The tensors that would be on the GPU, and their marks in the trace.

All tensors are on the CPU. A tensor that the script moves to CUDA, or makes there, is remembered by
its object, and a mark in the trace names its storage: a `user_annotation` of no length,
`xmem::to_device ADDRESS BYTES`. A tensor made without a device, or returned by a data loader, is
remembered as the host's. For results of operators only gradient functions give evidence.
"""

import collections.abc
import contextlib
import weakref


_torch = None
_recorder = None
_clone = None
_device_of = None
_places = {}
_used = False

DEVICE = "device"
HOST = "host"


def install(torch, recorder):
    """Initializes the module, before any function is wrapped."""
    global _torch, _recorder, _clone, _device_of
    _torch = torch
    _recorder = recorder
    _clone = torch.Tensor.clone
    _device_of = torch.Tensor.device.__get__


def used():
    """Returns whether the script has put a tensor on the GPU."""
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
    """The place of a tensor if it is certain: from the tensor, its base, or its gradient function."""
    place = _place(tensor)
    if place is None and tensor._base is not None:
        place = _place(tensor._base)
    if place is None and _used and tensor.grad_fn is not None:
        place = DEVICE
    return place


def looks_like_device(tensor):
    """Returns whether the script sees a tensor on the GPU. A tensor of unknown place is a result of
    operators, which run on the GPU once the script has put a tensor there."""
    return _used and known(tensor) != HOST


def _is_plain(tensor):
    """Returns whether a tensor has a storage on the CPU: it is not meta, sparse or fake."""
    try:
        return tensor.layout is _torch.strided and _device_of(tensor).type == "cpu"
    except Exception:
        return False


def _is_foreign(tensor):
    """Returns whether the memory is not PyTorch's but NumPy's, a mapped file's or shared: the trace
    has no event for it."""
    try:
        return not _storage(tensor).resizable()
    except Exception:
        return False


def _mark(what, tensor):
    storage = _storage(tensor)
    if storage.nbytes():
        _recorder.mark(f"xmem::{what} {storage.data_ptr():#x} {storage.nbytes()}")


def begin():
    """Starts the recording: the script uses the GPU from here on."""
    global _used
    _recorder.begin()
    _used = True


@contextlib.contextmanager
def all_on_device():
    """What the body makes is on the GPU, also where only C++ has it, if the script uses the GPU."""
    if not _used:
        yield
        return
    _recorder.mark("xmem::on_device_from")
    try:
        yield
    finally:
        _recorder.mark("xmem::on_device_until")


def moves_to_device(source, convert):
    """Returns `convert(source)` as a tensor on the GPU; `source` may be on the host."""
    begin()
    result = convert(source)
    if not isinstance(result, _torch.Tensor) or not _is_plain(result):
        return result
    if result is source or _shares(result, source):
        place = known(source)
        if place == DEVICE or place is None and _is_result_of_forward(source):
            return result
        if not _can_stay(source):
            # CUDA copies, and both are freed independently. Gradients flow through the copy.
            result = _clone(result)
    _mark("to_device", result)
    _remember(result, DEVICE)
    if isinstance(source, _torch.nn.Parameter):
        _remember(source, DEVICE)
    return result


def _is_result_of_forward(tensor):
    """Assumes that all of PyTorch's own memory is on the GPU during a forward."""
    return _recorder.inside_module() and not _is_foreign(tensor)


def _can_stay(tensor):
    """Returns whether no copy is needed: a module frees the old memory of a parameter at once."""
    is_parameter = isinstance(tensor, _torch.nn.Parameter)
    return is_parameter and _is_whole(tensor) and not _is_foreign(tensor)


def made_on_device(value):
    """Marks a tensor that was made on the GPU since `begin`."""
    if not isinstance(value, _torch.Tensor) or not _is_plain(value):
        return value
    if _is_foreign(value):
        value = _clone(value)
    _mark("on_device", value)
    _remember(value, DEVICE)
    return value


def moves_to_host(source, convert):
    """Returns `convert(source)` as a tensor on the host; `source` may be on the GPU."""
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
    """Remembers a tensor, or those in lists and dictionaries, as the host's."""
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
    return _storage(one).data_ptr() == _storage(other).data_ptr()


def _storage(tensor):
    """The memory of a tensor, of a DTensor that of its part on this process."""
    return local(tensor).untyped_storage()


def local(tensor):
    """The part of a DTensor that is of this process (torch/distributed/tensor/_api.py); any other tensor itself."""
    return getattr(tensor, "_local_tensor", tensor)


def _is_whole(tensor):
    return tensor.numel() * tensor.element_size() == _storage(tensor).nbytes()
