"""Mixed precision: the CPU's autocast casts what CUDA's does.

PyTorch has a list of operators for each device (aten/src/ATen/autocast_mode.h and autocast_mode.cpp). Every
build knows both lists: the dispatcher says which operators a release casts on CUDA. An operator that the CPU
casts in another way gets a kernel that casts as CUDA's does, and its casts of parameters are kept until
autocast ends.

Left to the CPU's list: operators that only it has and that run on matrices (linalg, fft, quantile), recurrent
layers of oneDNN, and `binary_cross_entropy`, which CUDA's autocast refuses.
"""

import functools
import warnings

from .. import errors, session
from ..patching import replace

# Operators that CUDA's autocast runs in its lower precision (AT_FORALL_LOWER_PRECISION_FP), without those of
# cuDNN and of CUDA's fused kernels, which have no kernel on the CPU.
LOWER = frozenset(
    """addbmm addmm addmv addr baddbmm bmm chain_matmul conv1d conv2d conv3d conv_tbc conv_transpose1d
    conv_transpose2d conv_transpose3d _convolution convolution einsum gru_cell linalg_multi_dot linalg_vecdot
    linear lstm_cell matmul mm mv prelu rnn_relu_cell rnn_tanh_cell scaled_dot_product_attention""".split()
)

# Operators that it runs in float32 (AT_FORALL_FP32).
WIDE = frozenset(
    """acos asin binary_cross_entropy_with_logits cdist cosh cosine_embedding_loss cosine_similarity dist
    erfinv exp expm1 frobenius_norm group_norm hinge_embedding_loss huber_loss kl_div l1_loss layer_norm log
    log10 log1p log2 logsumexp margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss
    native_layer_norm nll_loss nll_loss2d nuclear_norm pdist poisson_nll_loss pow reciprocal renorm rms_norm
    rsqrt sinh smooth_l1_loss soft_margin_loss softplus tan triplet_margin_loss upsample_bicubic2d
    _upsample_bicubic2d_aa upsample_bilinear2d _upsample_bilinear2d_aa upsample_linear1d upsample_nearest1d
    upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d _upsample_nearest_exact2d
    _upsample_nearest_exact3d upsample_trilinear3d""".split()
)

# Operators whose result it requests in float32 (AT_FORALL_FP32_SET_OPT_DTYPE).
WIDE_RESULT = frozenset(
    "cumprod cumsum linalg_matrix_norm linalg_vector_norm log_softmax prod softmax sum".split()
)

# Overloads that have another one with the result's type (AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE).
WITH_TYPE = {
    "norm.Scalar": "ScalarOpt_dtype",
    "norm.ScalarOpt_dim": "ScalarOpt_dim_dtype",
    "norm.names_ScalarOpt_dim": "names_ScalarOpt_dim_dtype",
}

# Operators that it runs in the widest of their inputs' types (AT_FORALL_PROMOTE).
PROMOTE = frozenset(
    """addcdiv addcmul atan2 bilinear cross dot grid_sampler index_put scatter_add tensordot vdot""".split()
)

# Operators that both lists have, under different policies.
DIFFERENT = frozenset(("grid_sampler", "prod"))

# Operators that only the CPU's list has, in float32. On CUDA they run in the type of their input.
AS_GIVEN = frozenset(
    """adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d fractional_max_pool2d fractional_max_pool3d
    max_pool3d max_unpool2d max_unpool3d reflection_pad1d reflection_pad2d replication_pad1d
    replication_pad2d replication_pad3d""".split()
)

# The same, with a kernel or a decomposition for every type on the CPU.
UNLISTED = frozenset(("cat", "cross_entropy_loss", "index_copy", "stack"))

_library = None
# By the address of a parameter's TensorImpl: a weak reference, which keeps the address from being used again, and
# the cast copy. The Python object does not identify it: PyTorch 2.1 makes another one for each call.
_casts = {}


def install(torch):
    """Registers the kernels. Where that fails, the CPU's lists stay."""
    global _library
    try:
        on_cuda = _registered(torch, "AutocastCUDA")
        on_cpu = _registered(torch, "AutocastCPU")
        _library = torch.library.Library("aten", "IMPL")
        with warnings.catch_warnings():
            # PyTorch warns of kernels that are replaced.
            warnings.simplefilter("ignore")
            for name in sorted(on_cuda | on_cpu):
                kernel = _kernel(torch, name, name in on_cuda, name in on_cpu)
                if kernel is not None:
                    _library.impl(name, kernel, "AutocastCPU")
        replace(torch, "clear_autocast_cache", _clearing)
    except Exception as error:
        if _library is not None:
            _library._destroy()
            _library = None
        session.note(
            "autocast casts what it casts on the CPU, which differs from CUDA for some operators:"
            f" {errors.describe(error)}"
        )


def are_those_of_cuda():
    """Returns whether the CPU's autocast casts as CUDA's does."""
    return _library is not None


def _registered(torch, key):
    """The operators that have a kernel for a dispatch key: `pow.Tensor_Scalar`."""
    names = torch._C._dispatch_get_registrations_for_dispatch_key(key)
    return {name[len("aten::") :] for name in names if name.startswith("aten::")}


def _kernel(torch, name, on_cuda, on_cpu):
    """The kernel of an operator; None for operators that are left to the CPU's list."""
    operator, _, overload = name.partition(".")
    if on_cuda and on_cpu and operator not in DIFFERENT:
        return None
    if not on_cuda and operator in UNLISTED:
        return torch.library.fallthrough_kernel
    packet = getattr(torch.ops.aten, operator)
    call = getattr(packet, overload or "default")
    if not on_cuda:
        return _uncast(torch, call) if operator in AS_GIVEN else None
    if operator in LOWER:
        lower = _lower_precision(torch)
        return _casting(torch, call, lambda _args, _kwargs: lower())
    if operator in WIDE:
        return _casting(torch, call, lambda _args, _kwargs: torch.float32)
    if operator in PROMOTE:
        return _casting(torch, call, _widest(torch, call))
    if operator in WIDE_RESULT:
        return _requesting(torch, call, call)
    if name in WITH_TYPE:
        return _requesting(torch, call, getattr(packet, WITH_TYPE[name]))
    return None


def _lower_precision(torch):
    """A function that returns the type of the lower precision."""
    if hasattr(torch, "get_autocast_dtype"):
        return lambda: torch.get_autocast_dtype("cpu")
    return torch.get_autocast_cpu_dtype


def _casting(torch, call, type_of):
    """A kernel that casts all floating-point inputs to one type (`CastPolicy` `lower_precision_fp`, `fp32`
    and `promote`), or to float32 if the CPU has no kernel for that type."""
    without_autocast = _without_autocast(torch)
    wide = _wide(torch)
    cast = _cached_cast(torch)
    positions, names = _tensor_arguments(call)

    def kernel(*args, **kwargs):
        with without_autocast():
            dtype = type_of(args, kwargs)
            given = list(args)
            for at in positions:
                if at < len(given):
                    given[at] = cast(given[at], dtype)
            named = dict(kwargs)
            for name in names:
                if name in named:
                    named[name] = cast(named[name], dtype)
            try:
                return call(*given, **named)
            except RuntimeError as error:
                if not _lacks_kernel(error):
                    raise
            return call(*map(wide, args), **kwargs)

    return kernel


def _uncast(torch, call):
    """A kernel for operators that CUDA's autocast does not cast. Types that the CPU has no kernel for are
    cast to float32, as the CPU's autocast does."""
    without_autocast = _without_autocast(torch)
    wide = _wide(torch)

    def kernel(*args, **kwargs):
        with without_autocast():
            try:
                return call(*args, **kwargs)
            except RuntimeError as error:
                if not _lacks_kernel(error):
                    raise
            return call(*map(wide, args), **kwargs)

    return kernel


def _requesting(torch, call, with_type):
    """A kernel that requests a result in float32, unless the call names a type (`fp32_set_opt_dtype` and
    `fp32_append_dtype`)."""
    without_autocast = _without_autocast(torch)
    arguments = call._schema.arguments
    names = [argument.name for argument in arguments]
    at = names.index("dtype") if "dtype" in names else len(names)
    # The dispatcher omits arguments that have their default value.
    defaults = [argument.default_value for argument in arguments[:at] if not argument.kwarg_only]

    def kernel(*args, **kwargs):
        with without_autocast():
            named = args[at] if len(args) > at else kwargs.get("dtype")
            if named is not None or not _is_eligible(torch, args[0]):
                return call(*args, **kwargs)
            given = [*args[:at], *defaults[len(args) :]]
            return with_type(*given, **{**kwargs, "dtype": torch.float32})

    return kernel


def _without_autocast(torch):
    """A function that returns a context in which operators are not cast."""
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)
    return lambda: torch._C._ExcludeDispatchKeyGuard(keys)


def _tensor_arguments(call):
    """The positions and the names of arguments that are tensors or lists of tensors."""
    positions, names = [], []
    for at, argument in enumerate(call._schema.arguments):
        if "Tensor" in str(argument.type):
            if argument.kwarg_only:
                names.append(argument.name)
            else:
                positions.append(at)
    return positions, names


def _widest(torch, call):
    """float32 if an input is, else the lower precision (autocast_mode.h, `promote_type`)."""
    lower = _lower_precision(torch)
    positions, names = _tensor_arguments(call)

    def is_wide(value):
        if isinstance(value, (list, tuple)):
            return any(is_wide(item) for item in value)
        return isinstance(value, torch.Tensor) and value.dtype is torch.float32

    def type_of(args, kwargs):
        tensors = [*(args[at] for at in positions if at < len(args)), *map(kwargs.get, names)]
        return torch.float32 if is_wide(tensors) else lower()

    return type_of


def _is_eligible(torch, value):
    """autocast_mode.h, `is_eligible`."""
    return (
        isinstance(value, torch.Tensor)
        and value.is_floating_point()
        and value.dtype is not torch.float64
        and value.device.type == "cpu"
    )


def _cached_cast(torch):
    """The function that casts an argument (autocast_mode.cpp, `cached_cast`)."""
    lower = _lower_precision(torch)
    to = torch.ops.aten.to.dtype
    reference = torch._C._WeakTensorRef
    with_gradient = _kept_casts_have_a_gradient(torch)

    def kept(value, dtype):
        if not with_gradient:
            return to(value, dtype)
        with torch.enable_grad():
            return to(value, dtype)

    def cast(value, dtype):
        if value is None:
            return None
        if isinstance(value, (list, tuple)):
            return [cast(item, dtype) for item in value]
        if value.dtype is dtype or not _is_eligible(torch, value):
            return value
        is_kept = (
            value.requires_grad
            and value.is_leaf
            and value.dtype is torch.float32
            and dtype is lower()
            and not value._is_view()
            and torch.is_autocast_cache_enabled()
            and not (with_gradient and torch.is_inference_mode_enabled())
        )
        if not is_kept:
            return to(value, dtype)
        found = _casts.get(value._cdata)
        if found is None:
            found = _casts[value._cdata] = reference(value), kept(value, dtype)
        return found[1]

    return cast


@functools.cache
def _kept_casts_have_a_gradient(torch):
    """Returns whether this release keeps casts that are made under `no_grad` with a gradient, and none of
    inference mode. Before, a cast that was kept under `no_grad` had none in later uses either."""
    weight = torch.zeros(1, 1, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with torch.no_grad():
            torch.mm(weight, weight)
        return torch.mm(weight, weight).requires_grad


def _wide(torch):
    """A function that casts an argument to float32."""
    to = torch.ops.aten.to.dtype

    def wide(value):
        if isinstance(value, (list, tuple)):
            return [wide(item) for item in value]
        return to(value, torch.float32) if _is_eligible(torch, value) else value

    return wide


def _lacks_kernel(error):
    """Returns whether an operator failed as the CPU has no kernel for a type (ATen/Dispatch.h)."""
    return "not implemented for" in str(error)


def _clearing(original):
    def clear_autocast_cache():
        _casts.clear()
        return original()

    return clear_autocast_cache
