"""Random numbers of the CPU's generator that are skipped instead of drawn, in a tenth of the time, and those of the GPU's
generator, which are drawn beside it."""

import ctypes

from . import library

# Values that `normal_` makes together; for a rest of fewer, it makes the last ones again
# (aten/src/ATen/native/cpu/DistributionTemplates.h, `normal_fill`).
TOGETHER = 16
# Functions that draw, or whose names begin in one of these ways.
DRAWING = ("bernoulli", "binomial", "cauchy", "dropout", "exponential", "feature_dropout", "geometric", "log_normal")
DRAWING += ("multinomial", "normal", "poisson", "rand", "rrelu", "uniform", "alpha_dropout", "_standard_gamma")

# The seed from which numbers for the GPU are drawn, and the state behind the last of them.
_of_gpu = None


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


def draws(name):
    """Returns whether a function of torch draws random numbers."""
    return name.startswith(DRAWING)


def for_gpu(torch, function):
    """Calls a function that draws numbers which the GPU would draw: the script's own on the host are as without them."""
    global _of_gpu
    generator = torch.default_generator
    own, seed = generator.get_state(), generator.initial_seed()
    # Another seed (`torch.manual_seed`) begins both again.
    if _of_gpu is None or _of_gpu[0] != seed:
        generator.manual_seed(seed)
    else:
        generator.set_state(_of_gpu[1])
    try:
        return function()
    finally:
        _of_gpu = seed, generator.get_state()
        generator.set_state(own)
