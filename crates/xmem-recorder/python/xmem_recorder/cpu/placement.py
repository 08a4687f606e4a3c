"""Moves of tensors between the GPU and the host, and their marks in the trace.

A mark names the storage of a tensor that the script moves to CUDA, or makes there: a `user_annotation` of no length,
`xmem::to_device ADDRESS BYTES`.
"""

import contextlib

from ..recording import begin, calls, run
from . import places

_torch = None
# Functions of PyTorch that are wrapped for the script.
_clone = None
_device_of = None
# False where tensors have no memory: while a graph is taken.
_is_active = True


def install(torch):
    """Initializes the module, before any function is wrapped."""
    global _torch, _clone, _device_of
    _torch = torch
    _clone = torch.Tensor.clone
    _device_of = torch.Tensor.device.__get__


def rest():
    """Leaves tensors as they are from here on: they have no memory."""
    global _is_active
    _is_active = False


def _is_plain(tensor):
    """Returns whether a tensor has a storage on the CPU: it is not meta, sparse or fake."""
    if not _is_active:
        return False
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
        run.mark(f"xmem::{what} {storage.data_ptr():#x} {storage.nbytes()}")


def use_device():
    """Begins the recording: the script uses the GPU from here on."""
    begin.begin()
    places.use()


@contextlib.contextmanager
def all_on_device():
    """What the body makes is on the GPU, also where only C++ has it, if the script uses the GPU."""
    if not places.used():
        yield
        return
    with _all("on_device"):
        yield


def all_on_host():
    """What the body makes is on the host."""
    return _all("on_host")


@contextlib.contextmanager
def _all(where):
    run.mark(f"xmem::{where}_from")
    try:
        yield
    finally:
        run.mark(f"xmem::{where}_until")


def moves_to_device(source, convert):
    """Returns `convert(source)` as a tensor on the GPU; `source` may be on the host."""
    use_device()
    result = convert(source)
    if not isinstance(result, _torch.Tensor) or not _is_plain(result):
        return result
    if result is source or _shares(result, source):
        place = places.known(source)
        if place == places.DEVICE or place is None and _is_result_of_forward(source):
            return result
        if place == places.HOST or not _can_stay(source):
            # CUDA copies, and both are freed independently. Gradients flow through the copy.
            result = _clone(result)
    _mark("to_device", result)
    places.remember(result, places.DEVICE)
    if isinstance(source, _torch.nn.Parameter):
        places.remember(source, places.DEVICE)
    return result


def _is_result_of_forward(tensor):
    """Assumes that all of PyTorch's own memory is on the GPU during a forward."""
    return calls.inside_module() and not _is_foreign(tensor)


def _can_stay(tensor):
    """Returns whether no copy is needed: a module frees the old memory of a parameter at once."""
    is_parameter = isinstance(tensor, _torch.nn.Parameter)
    return is_parameter and _is_whole(tensor) and not _is_foreign(tensor)


def made_on_device(value):
    """Marks a tensor that was made on the GPU since `use_device`."""
    if not isinstance(value, _torch.Tensor) or not _is_plain(value):
        return value
    if _is_foreign(value):
        value = _clone(value)
    _mark("on_device", value)
    places.remember(value, places.DEVICE)
    return value


def made_on_host(value):
    """Marks a tensor that was made on the host, once the script uses the GPU."""
    if places.used() and isinstance(value, _torch.Tensor) and _is_plain(value):
        _mark("to_host", value)
        places.remember(value, places.HOST)
    else:
        places.is_on_host(value)
    return value


def moves_to_host(source, convert):
    """Returns `convert(source)` as a tensor on the host; `source` may be on the GPU."""
    result = convert(source)
    if not places.used() or not isinstance(result, _torch.Tensor) or not _is_plain(result):
        return result
    if places.known(source) == places.HOST:
        return result
    if result is source or _shares(result, source):
        result = _clone(result)
    _mark("to_host", result)
    places.remember(result, places.HOST)
    if isinstance(source, _torch.nn.Parameter):
        places.remember(source, places.HOST)
    return result


def _shares(one, other):
    return _storage(one).data_ptr() == _storage(other).data_ptr()


def _storage(tensor):
    """The memory of a tensor, of a DTensor that of its part on this process."""
    return places.local(tensor).untyped_storage()


def _is_whole(tensor):
    return tensor.numel() * tensor.element_size() == _storage(tensor).nbytes()
