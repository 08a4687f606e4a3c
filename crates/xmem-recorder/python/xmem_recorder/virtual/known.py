"""What is known of the values in the memory of a virtual GPU, which is ordinary memory.

The values of a tensor are known if they follow from the host, assumed if they follow from the host and assumptions
(`assumptions`), and unknown otherwise. Unknown values of small tensors are what the same functions
make of zeros.
"""

import atexit
import ctypes

from .. import operators

# Bytes up to which values of integers and booleans are kept, those of others, and assumed integers.
MAX_INTEGER_BYTES = 1 << 16
MAX_OTHER_BYTES = 128
MAX_ASSUMED_BYTES = 1 << 28
# Bytes up to which zeros are remembered: what is computed from them is computed on the host.
MAX_ZEROS_BYTES = 1 << 26

# What is known of a tensor. Below `SMALL`, its values are not looked at. From `COUNTED` on, they are known or assumed.
LARGE, SMALL, COUNTED, ROUTED, KNOWN = range(5)
# The assumption that values follow from; where there are several, it is the first of them.
ASSUMPTIONS = {COUNTED: "nonzero", ROUTED: "routing"}

# Bytes up to which a result is looked at, by dtype. Changed in place when the first values are assumed.
looked_at = {}

_torch = None
_StorageWeakRef = None
_most_bytes = {}


class Marks:
    """What is noted of tensors, by the addresses of their storages: another storage at the same address is another one."""

    def __init__(self):
        self.found = {}

    def keep(self, tensor, what=True):
        """Notes it of a tensor's storage."""
        self.found[address(tensor)] = reference(tensor), what

    def of(self, tensor):
        """What is noted of a tensor; None if nothing is."""
        owner, what = self.found.get(address(tensor), (None, None))
        return what if owner is not None and owner.cdata == tensor.untyped_storage()._cdata else None

    def forget(self, tensor):
        """Drops what is noted of a tensor."""
        self.found.pop(address(tensor), None)

    def install(self):
        """A reference that outlives torch's module cannot be released."""
        atexit.register(self.found.clear)


# Whether the values of a tensor are integers, and what is known of them.
_states = Marks()
# Tensors of zeros, larger than others that are looked at, with their versions.
_zeros = Marks()
# Unknown numbers that count elements of a mask.
counts = Marks()


def install(torch):
    """Learns the dtypes of torch."""
    global _torch, _StorageWeakRef
    from torch.multiprocessing.reductions import StorageWeakRef

    _torch = torch
    _StorageWeakRef = StorageWeakRef
    for marks in (_states, _zeros, counts):
        marks.install()
    for dtype in {value for value in vars(torch).values() if isinstance(value, torch.dtype)}:
        _most_bytes[dtype] = MAX_INTEGER_BYTES if _is_integer(dtype) else MAX_OTHER_BYTES
    looked_at.update(_most_bytes)


def _is_integer(dtype):
    return not (dtype.is_floating_point or dtype.is_complex)


def address(tensor):
    """The address of a tensor's storage."""
    return tensor.untyped_storage().data_ptr()


def reference(tensor):
    """A weak reference to a tensor's storage: no other storage has its `cdata` while the reference exists."""
    return _StorageWeakRef(tensor.untyped_storage())


def is_small(tensor):
    """Returns whether the values of a tensor are looked at whatever they follow from."""
    return tensor.numel() * tensor.element_size() <= _most_bytes[tensor.dtype]


def has_memory(tensor):
    """Returns whether a tensor has memory of its own. Sparse and nested tensors have none, nor have subclasses that
    wrap other tensors (torch/_subclasses/fake_tensor.py, `FakeTensor`; torch/distributed/tensor, `DTensor`)."""
    kind = type(tensor)
    if kind is not _torch.Tensor and kind.__torch_dispatch__ is not _torch.Tensor.__torch_dispatch__:
        return False
    return tensor.layout is _torch.strided and not tensor.is_nested


def state(tensor):
    """What is known of a tensor on the device."""
    if not has_memory(tensor):
        return LARGE
    storage = tensor.untyped_storage()
    if storage.data_ptr() == 0:
        return KNOWN if storage.nbytes() == 0 else LARGE
    found = _states.of(tensor)
    if found is not None:
        is_integer, known = found
        if is_integer == _is_integer(tensor.dtype):
            return known
    if are_zeros(tensor):
        return KNOWN
    return SMALL if is_small(tensor) else LARGE


def keep_zeros(tensor):
    """Notes that a tensor is zeros until an operator changes it in place."""
    if has_memory(tensor) and not tensor.is_inference() and tensor.nbytes <= MAX_ZEROS_BYTES:
        _zeros.keep(tensor, tensor._version)


def are_zeros(tensor):
    """Returns whether it is."""
    version = _zeros.of(tensor)
    return version is not None and not tensor.is_inference() and tensor._version == version


def is_known(tensor):
    """Returns whether the memory of a tensor on the device holds its values."""
    return state(tensor) == KNOWN


def keep(tensor, known):
    """Notes that the memory of a tensor holds its known or assumed values."""
    _states.keep(tensor, (_is_integer(tensor.dtype), known))
    if known == ROUTED:
        for dtype in looked_at:
            if _is_integer(dtype):
                looked_at[dtype] = MAX_ASSUMED_BYTES


def forget(tensor):
    """Notes that the values of a tensor are unknown."""
    _states.forget(tensor)
    _zeros.forget(tensor)


def clear(tensor, value=0):
    """Makes all bytes of a small tensor with unknown values this one: the memory may hold what was there before."""
    if not has_memory(tensor):
        return
    forget(tensor)
    storage = tensor.untyped_storage()
    if not storage.data_ptr():
        return
    if is_small(tensor) and tensor.numel() * tensor.element_size() == storage.nbytes():
        ctypes.memset(storage.data_ptr(), value, storage.nbytes())


def alias(tensor):
    """A tensor of the host on the device's memory; raises `ValueError` for a tensor without memory of its own."""
    if not has_memory(tensor):
        raise ValueError(f"a {type(tensor).__name__} does not own memory")
    storage = tensor.untyped_storage()
    size = storage.nbytes()
    if size and not storage.data_ptr():
        raise ValueError("a storage has no memory")
    if size == 0:
        return _torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
    memory = (ctypes.c_char * size).from_address(storage.data_ptr())
    flat = _torch.frombuffer(memory, dtype=_torch.uint8)
    empty = _torch.empty(0, dtype=tensor.dtype, device="cpu")
    return empty.set_(flat.untyped_storage(), tensor.storage_offset(), tensor.shape, tensor.stride())


def unrecorded(function, *args):
    """Calls a function whose operators are not part of the job: neither the trace nor modes of the script see them."""
    # The CPU keeps no values, and its own modes are needed.
    without_modes = None if _torch is None else _torch._C._DisableTorchDispatch()
    operators.pause()
    try:
        return function(*args)
    finally:
        del without_modes
        operators.go_on()
