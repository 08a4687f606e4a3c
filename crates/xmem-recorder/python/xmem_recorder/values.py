"""Values on a virtual GPU, where no kernel computes.

Small tensors whose values follow from the host (indices, masks, positions, scales) keep their real values:
the same function is called on the host, on the same bytes, since the device's memory is ordinary memory.
All others hold zeros, or what was there before. What the script reads of those is counted, by its purpose.

Operators whose output has as many elements as the device finds (`nonzero`, and with it indexing by a mask) use
the real number where the mask is known, and a stated share of it otherwise.
"""

import ctypes
import functools
import sys
import warnings

from . import hostmemory, session
from .imports import inside_import
from .patching import replace

# Bytes up to which values of integers and booleans are kept, and those of others.
MAX_INTEGER_BYTES = 1 << 16
MAX_OTHER_BYTES = 128
# Tensors in a result that are looked at, and places in the script that are listed.
MAX_TENSORS = 8
MAX_PLACES = 64

# Functions by which the script reads a value, and the purpose that they tell.
READS = {
    "__bool__": "control flow",
    "__float__": "value",
    "__index__": "size",
    "__int__": "size",
    "item": "value",
    "numpy": "value",
    "tolist": "value",
}
# Functions that change what a tensor is, not its values.
NO_VALUES = {"detach_", "record_stream", "rename_", "requires_grad_", "resize_", "set_", "share_memory_"}

_torch = None
_mode = None
_compiles = False
_most_bytes = {}
_known = {}
_reads = {}
_shares = {}


def facts():
    """The reads of values that are not known: the purpose, the place, how often."""
    return [
        {"purpose": purpose, "place": place, "times": times}
        for (purpose, place), times in list(_reads.items())[:MAX_PLACES]
    ]


def compiles():
    """Returns whether the script compiles on the virtual GPU."""
    return _compiles


def assumed():
    """Assumptions about sizes: the operator, the share of its input, how often."""
    return [{"operator": name, "share": share, "times": times} for (name, share), times in _shares.items()]


def install(torch):
    """Begins to keep values."""
    global _torch, _mode
    _torch = torch
    instead = hostmemory.install(torch)
    for dtype in {value for value in vars(torch).values() if isinstance(value, torch.dtype)}:
        is_other = dtype.is_floating_point or dtype.is_complex
        _most_bytes[dtype] = MAX_OTHER_BYTES if is_other else MAX_INTEGER_BYTES
    _mode = _make_mode(torch, instead)
    _mode.__enter__()
    _watch_compilation(torch)
    _install_nonzero(torch)


def _make_mode(torch, instead):
    reads = {getattr(torch.Tensor, name): purpose for name, purpose in READS.items()}
    tensors = (torch.Tensor, torch.nn.Parameter)
    most = _most_bytes
    set_item = torch.Tensor.__setitem__
    sequences = (tuple, list)

    class Values(torch.overrides.TorchFunctionMode):
        """Sees every call of a function of torch by Python code."""

        # Every call in here is an event of the trace: the usual case has none but that of `func`.
        def __torch_function__(self, func, types, args=(), kwargs=None):
            if kwargs is None:
                kwargs = {}
            if func in instead:
                result = instead[func](*args, **kwargs)
                if result is not None:
                    return result
            if func in reads:
                _read(args[0], reads[func])
            result = func(*args, **kwargs)
            if type(result) in tensors:
                if result.is_cuda and result.nbytes <= most[result.dtype]:
                    _follow(func, args, kwargs, [result])
            elif result is None:
                if func is set_item and args[0].is_cuda:
                    _follow(func, args, kwargs, [args[0]])
            elif type(result) in sequences or isinstance(result, tuple):
                _follow_all(func, args, kwargs, result, tensors)
            return result

    return Values()


def _watch_compilation(torch):
    """Stops keeping values before the first compilation: the compiler would see the calls."""

    def watched(original):
        def compile(model=None, **options):
            if model is None:
                return lambda model: compile(model, **options)
            if isinstance(model, torch.nn.Module) or not inside_import():
                _stop()
                return original(model, **options)
            return _stops_when_called(original(model, **options))

        return compile

    def watched_method(original):
        def compile(self, *args, **kwargs):
            _stop()
            return original(self, *args, **kwargs)

        return compile

    replace(torch, "compile", watched)
    replace(torch.nn.Module, "compile", watched_method)


def _stops_when_called(compiled):
    """A function that a library compiles while it is imported, and that may never be called."""

    @functools.wraps(compiled)
    def call(*args, **kwargs):
        _stop()
        return compiled(*args, **kwargs)

    return call


def _stop():
    """Removes the mode from below those of the script, and ends Python stacks: a compilation makes tens of
    millions of calls."""
    global _mode, _compiles
    _compiles = True
    if _mode is None:
        return
    if session.settings()["stacks"]:
        sys.setprofile(None)
        session.note("torch.compile: no Python stacks are recorded from the first compilation on")
    from torch.overrides import _len_torch_function_stack, _pop_mode, _push_mode

    above = [_pop_mode() for _ in range(_len_torch_function_stack())]
    for mode in reversed(above):
        if mode is not _mode:
            _push_mode(mode)
    _mode = None


# ---------------------------------------------------------------------------------------------
# Known values
# ---------------------------------------------------------------------------------------------


def _is_small(tensor):
    return tensor.numel() * tensor.element_size() <= _most_bytes[tensor.dtype]


def _address(tensor):
    return tensor.untyped_storage().data_ptr()


def is_known(tensor):
    """Returns whether the memory of a tensor on the device holds its values."""
    address = _address(tensor)
    return address == 0 or _known.get(address, 0) >= tensor.untyped_storage().nbytes()


def _follow_all(func, args, kwargs, results, tensors):
    """As `_follow`, for a function with several results."""
    results = list(results)
    if 0 < len(results) <= MAX_TENSORS and all(type(result) in tensors for result in results):
        if all(result.is_cuda for result in results):
            _follow(func, args, kwargs, results)


def _follow(func, args, kwargs, results):
    """Computes small results on the host from known arguments, and writes them to the device's memory."""
    if _torch._C._get_tracing_state() is not None:
        # `torch.jit.trace` would record what is computed here.
        return
    # What is computed here is not part of the job.
    _torch._C._autograd._enable_record_function(False)
    try:
        if not all(_is_small(result) and result.layout is _torch.strided for result in results):
            return
        name = getattr(func, "__name__", "")
        if name in NO_VALUES or name == "__get__":
            # The storage is that of an argument, and known as before.
            return
        with _torch._C.DisableTorchFunction(), _torch.no_grad():
            if not _compute(func, name, args, kwargs, results):
                _clear(results)
    except Exception:
        _clear(results)
    finally:
        _torch._C._autograd._enable_record_function(True)


def _compute(func, name, args, kwargs, results):
    changed = _changed(name, args, kwargs)
    host_arguments = _Arguments(changed)
    host_args = host_arguments.of(args)
    host_kwargs = host_arguments.of({key: value for key, value in kwargs.items() if key != "pin_memory"})
    if not host_arguments.known:
        return False
    if host_arguments.results_share(results) and not changed:
        # A view.
        return True
    values = func(*host_args, **host_kwargs)
    if changed:
        values = [_alias(result) for result in results]
    elif isinstance(values, _torch.Tensor):
        values = [values]
    for result, value in zip(results, values):
        if value.shape != result.shape or value.dtype != result.dtype:
            return False
        storage = result.untyped_storage()
        alias = _alias(result)
        if alias.data_ptr() != value.data_ptr():
            alias.copy_(value)
        _known[storage.data_ptr()] = storage.nbytes()
    return True


def _clear(results):
    """Makes unknown values zeros: the memory may hold what was there before."""
    for result in results:
        _known.pop(_address(result), None)
        if result.numel() == result.untyped_storage().nbytes() // result.element_size():
            ctypes.memset(_address(result), 0, result.untyped_storage().nbytes())


def _changed(name, args, kwargs):
    """The tensor that a function changes in place."""
    if kwargs.get("out") is not None:
        return kwargs["out"]
    in_place = name == "__setitem__" or name.endswith("_") and not name.endswith("__")
    in_place = in_place or name in ("__iadd__", "__isub__", "__imul__", "__iand__", "__ior__")
    return args[0] if in_place and args else None


class _Arguments:
    """Arguments on the host: tensors of the device by views of the same memory."""

    def __init__(self, changed):
        self.changed = changed
        self.known = True
        self.addresses = set()

    def of(self, value):
        if isinstance(value, _torch.Tensor):
            return self._tensor(value)
        if isinstance(value, _torch.device):
            return _torch.device("cpu") if value.type == "cuda" else value
        if isinstance(value, str):
            return "cpu" if value.startswith("cuda") else value
        if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
            return type(value)([self.of(item) for item in value])
        if isinstance(value, dict):
            return {key: self.of(item) for key, item in value.items()}
        return value

    def _tensor(self, tensor):
        if not tensor.is_cuda:
            return tensor
        overwritten = tensor is self.changed and tensor.is_contiguous()
        if not overwritten and not is_known(tensor) or not _is_small(tensor):
            self.known = False
            return tensor
        self.addresses.add(_address(tensor))
        return _alias(tensor)

    def results_share(self, results):
        return all(_address(result) in self.addresses for result in results)


def _alias(tensor):
    """A tensor of the host on the device's memory."""
    storage = tensor.untyped_storage()
    size = storage.nbytes()
    if size == 0:
        return _torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
    memory = (ctypes.c_char * size).from_address(storage.data_ptr())
    flat = _torch.frombuffer(memory, dtype=_torch.uint8)
    empty = _torch.empty(0, dtype=tensor.dtype, device="cpu")
    return empty.set_(flat.untyped_storage(), tensor.storage_offset(), tensor.shape, tensor.stride())


# ---------------------------------------------------------------------------------------------
# Reads
# ---------------------------------------------------------------------------------------------


def _read(tensor, purpose):
    """Counts a read of a value that is not known."""
    try:
        with _torch._C.DisableTorchFunction():
            if not isinstance(tensor, _torch.Tensor) or not tensor.is_cuda or is_known(tensor):
                return
            if purpose == "value" and not tensor.dtype.is_floating_point:
                purpose = "control flow" if tensor.dtype is _torch.bool else "size"
    except Exception:
        return
    frame = sys._getframe(2)
    place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
    _reads[purpose, place] = _reads.get((purpose, place), 0) + 1


# ---------------------------------------------------------------------------------------------
# Sizes
# ---------------------------------------------------------------------------------------------

_library = None


def _install_nonzero(torch):
    """Replaces CUDA's kernel of `nonzero`, which reads a number from the device."""
    global _library
    _library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _library.impl("nonzero", _nonzero, "CUDA")


def _known_nonzero(mask):
    indices = _unrecorded(lambda: _alias(mask).nonzero())
    out = _torch.empty((mask.dim(), indices.shape[0]), dtype=_torch.int64, device=mask.device)
    if out.numel():
        _unrecorded(lambda: _alias(out).copy_(indices.t()))
        _known[_address(out)] = out.untyped_storage().nbytes()
    return out.t()


def _unrecorded(function):
    """Calls a function whose operators are not part of the job."""
    _torch._C._autograd._enable_record_function(False)
    try:
        return function()
    finally:
        _torch._C._autograd._enable_record_function(True)


def _nonzero(mask):
    """The indices of elements that are not zero: int64, as many rows as elements, as a transposed matrix
    (aten/src/ATen/native/cuda/Nonzero.cu, `nonzero_cuda_out_impl`)."""
    with _torch._C.DisableTorchFunction():
        if _is_small(mask) and is_known(mask):
            return _known_nonzero(mask)
        share = float(session.settings().get("assume_nonzero", 1.0))
        _shares["aten::nonzero", share] = _shares.get(("aten::nonzero", share), 0) + 1
        count = round(mask.numel() * share)
        return _torch.empty((mask.dim(), count), dtype=_torch.int64, device=mask.device).t()
