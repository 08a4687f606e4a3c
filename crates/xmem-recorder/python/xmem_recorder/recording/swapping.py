"""`torch.utils.swap_tensors` under torch's profiler.

`Module.to_empty`, `Module.to` and others swap the tensors of parameters of subclasses, such as FSDP2's DTensor. PyTorch
refuses that for tensors to which C++ has weak references (torch/csrc/Module.cpp, `THPModule_swap_tensor_impl`), and the
profiler keeps one for each operator that used a tensor (torch/csrc/profiler/collection.h, `WeakTensor`). It only compares
their addresses, so that they may stay.
"""

import ctypes
import re

from ..patching import replace

# The counts of strong and weak references of a tensor, 32 bits each, behind the pointer to its class's functions
# (c10/util/intrusive_ptr.h, `intrusive_ptr_target`). The highest bit is a flag in newer releases.
_STRONG, _WEAK = 8, 12
_FLAG = 1 << 31


def install(torch):
    """Swaps tensors in spite of the profiler's references."""
    if hasattr(torch._C, "_swap_tensor_impl"):
        replace(torch._C, "_swap_tensor_impl", _swap)


def _swap(original):
    def swap(one, other):
        hidden = []
        try:
            while True:
                try:
                    return original(one, other)
                except RuntimeError as error:
                    found = re.search(r"no weakrefs to t([12])'s Tensor object but got +(\d+)", str(error))
                    if found is None:
                        raise
                    tensor = one if found.group(1) == "1" else other
                    hidden.append(_hide(tensor, int(found.group(2)), error))
        finally:
            for count, references in hidden:
                count.value += references

    return swap


def _hide(tensor, references, error):
    """Takes the weak references out of a tensor's count; returns the count and their number."""
    strong = ctypes.c_uint32.from_address(tensor._cdata + _STRONG)
    weak = ctypes.c_uint32.from_address(tensor._cdata + _WEAK)
    if weak.value & ~_FLAG != references + 1 or strong.value != tensor._use_count():
        raise error
    weak.value -= references
    return weak, references
