"""Random numbers of the CPU's generator that are skipped instead of drawn: a tenth of the time."""

import ctypes

from . import library

# Values that `normal_` makes together; for a rest of fewer, it makes the last ones again
# (aten/src/ATen/native/cpu/DistributionTemplates.h, `normal_fill`).
TOGETHER = 16


def of(torch, method, tensor):
    """The numbers of 32 bits that a method draws for a large tensor; None if that is not known, or none can be skipped."""
    if library.function("skip_random") is None:
        return None
    count = tensor.numel()
    # Releases differ in how `normal_` draws for types of 16 bits.
    if method == "normal_" and tensor.dtype in (torch.float32, torch.float64):
        count += TOGETHER if count % TOGETHER else 0
    elif method != "uniform_":
        return None
    return 2 * count if tensor.dtype == torch.float64 else count


def skip(generator, count):
    """Skips numbers of 32 bits; false if the generator is of an unknown kind."""
    state = generator.get_state()
    function = library.function("skip_random")
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64)
    if not function(state.data_ptr(), state.nbytes, count):
        return False
    generator.set_state(state)
    return True
