"""Mixed precision: `autocast("cuda")` and its state are redirected to the CPU's."""

from .. import scaling, session
from ..facts import precision
from ..patching import replace
from . import autocast_lists, redirected


class _Autocast:
    """The redirection of autocast."""

    def __init__(self):
        # True if float16 was requested and bfloat16 computed.
        self.is_bfloat16 = False
        # The dtype where a script names none.
        self.default_dtype = None
        self.is_before_2_3 = False


_autocast = _Autocast()


def install(torch):
    """Wraps `torch.autocast`, the functions behind it, and the gradient scaler."""
    _autocast.default_dtype = torch.float16
    # 2.3 added CPU kernels for the scaler, and a scaler for any device.
    _autocast.is_before_2_3 = not hasattr(torch.amp, "GradScaler")
    kind = torch.amp.autocast_mode.autocast
    replace(kind, "__init__", lambda original: _init(torch, original))
    _install_state(torch)
    _install_cast_inputs(torch)
    autocast_lists.install(torch)
    replace(torch.Tensor, "numpy", lambda original: _numpy(torch, original))
    precision.watch_scalers(torch)
    if _autocast.is_before_2_3:
        _install_scaling(torch)


def is_bfloat16():
    """Returns whether the script asked for float16 and was given bfloat16."""
    return _autocast.is_bfloat16


def _init(torch, original):
    def init(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if device_type != "cuda":
            return original(self, device_type, dtype, enabled, cache_enabled)
        redirected.count("autocast('cuda')")
        if dtype is None:
            dtype = _autocast.default_dtype
        if enabled:
            precision.requested(dtype, cache_enabled)
        return original(self, "cpu", _supported(torch, dtype, enabled), enabled, cache_enabled)

    return init


def _supported(torch, dtype, enabled=True):
    """The dtype for the CPU's autocast: float16 needs 2.3 and has slow kernels; bfloat16 has the same size."""
    if dtype is torch.float16 and (_autocast.is_before_2_3 or session.settings().get("float16") != "kept"):
        if enabled:
            _autocast.is_bfloat16 = True
            session.note("autocast to float16: computed in bfloat16, which has the same size and is faster on a CPU")
        return torch.bfloat16
    return dtype


def _numpy(torch, original):
    """Wraps `Tensor.numpy`: NumPy has no bfloat16, and the script expects float16."""

    def numpy(self, **kwargs):
        if _autocast.is_bfloat16 and self.dtype is torch.bfloat16:
            self = self.to(torch.float16)
        return original(self, **kwargs)

    return numpy


def _install_state(torch):
    """Redirects `is_autocast_enabled()` and the like, which mean CUDA without a device."""

    def current_dtype():
        enabled = torch.is_autocast_cpu_enabled()
        return torch.get_autocast_cpu_dtype() if enabled else _autocast.default_dtype

    def chosen(dtype):
        _autocast.default_dtype = dtype
        return _supported(torch, dtype)

    def is_enabled(original):
        def is_autocast_enabled(device_type="cuda"):
            if device_type == "cuda":
                return torch.is_autocast_cpu_enabled()
            return original(device_type)

        return is_autocast_enabled

    def set_enabled(original):
        def set_autocast_enabled(*args):
            if len(args) == 1 or args[0] == "cuda":
                return torch.set_autocast_cpu_enabled(args[-1])
            return original(*args)

        return set_autocast_enabled

    def get_dtype(original):
        def get_autocast_dtype(device_type):
            if device_type != "cuda":
                return original(device_type)
            return current_dtype()

        return get_autocast_dtype

    def set_dtype(original):
        def set_autocast_dtype(device_type, dtype):
            if device_type == "cuda":
                return original("cpu", chosen(dtype))
            return original(device_type, dtype)

        return set_autocast_dtype

    def set_gpu_dtype(original):
        return lambda dtype: torch.set_autocast_cpu_dtype(chosen(dtype))

    replace(torch, "is_autocast_enabled", is_enabled)
    replace(torch, "set_autocast_enabled", set_enabled)
    replace(torch, "get_autocast_dtype", get_dtype)
    replace(torch, "set_autocast_dtype", set_dtype)
    replace(torch, "set_autocast_gpu_dtype", set_gpu_dtype)
    replace(torch, "get_autocast_gpu_dtype", lambda original: lambda: current_dtype())


def _install_cast_inputs(torch):
    """Makes `custom_fwd(cast_inputs=…)` cast: it asks tensors for their device, which is the CPU's. Before 2.4,
    tensors answer (`is_cuda` in tensors.py)."""

    def casting(original):
        def _cast(value, device_type, dtype):
            return original(value, "cpu" if device_type == "cuda" else device_type, dtype)

        return _cast

    replace(torch.amp.autocast_mode, "_cast", casting)


def _install_scaling(torch):
    """Implements the two operators of the scaler, which have a CPU kernel since 2.3."""

    def unscale(gradients, found_inf, inverse_scale):
        for gradient in gradients:
            if not torch.isfinite(gradient).all():
                found_inf.fill_(1.0)
            gradient.mul_(inverse_scale)

    torch._amp_foreach_non_finite_check_and_unscale_ = unscale
    torch._amp_update_scale_ = scaling.update
