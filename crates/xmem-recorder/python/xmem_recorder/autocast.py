"""Mixed precision: `autocast("cuda")` and its state are redirected to the CPU's."""

from . import autocast_lists, session
from .patching import replace

# Requested settings of autocast for CUDA: (dtype, cache_enabled).
requested = []
scalers = 0
# True if float16 was requested and bfloat16 computed.
as_bfloat16 = False

_default_dtype = None
_is_before_2_3 = False


def install(torch):
    """Wraps `torch.autocast`, the functions behind it, and the gradient scaler."""
    global _default_dtype, _is_before_2_3
    _default_dtype = torch.float16
    # 2.3 added CPU kernels for the scaler, and a scaler for any device.
    _is_before_2_3 = not hasattr(torch.amp, "GradScaler")
    kind = torch.amp.autocast_mode.autocast
    replace(kind, "__init__", lambda original: _init(torch, original))
    _install_state(torch)
    _install_cast_inputs(torch)
    autocast_lists.install(torch)
    replace(torch.Tensor, "numpy", lambda original: _numpy(torch, original))
    replace(torch.cuda.amp.GradScaler, "__init__", _scaler)
    if _is_before_2_3:
        _install_scaling(torch)
    else:
        replace(torch.amp.GradScaler, "__init__", _scaler)


def watch(torch):
    """Notes the settings of `autocast("cuda")` and the scalers, without redirecting them."""

    def noting(original):
        def init(self, device_type, dtype=None, enabled=True, cache_enabled=None):
            original(self, device_type, dtype, enabled, cache_enabled)
            setting = (getattr(self, "fast_dtype", dtype), cache_enabled)
            if device_type == "cuda" and enabled and setting not in requested:
                requested.append(setting)

        return init

    replace(torch.amp.autocast_mode.autocast, "__init__", noting)
    for owner in (torch.cuda.amp, torch.amp):
        kind = getattr(owner, "GradScaler", None)
        if kind is not None and "__init__" in vars(kind):
            replace(kind, "__init__", _scaler)


def _init(torch, original):
    def init(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if device_type != "cuda":
            return original(self, device_type, dtype, enabled, cache_enabled)
        session.count("autocast('cuda')")
        if dtype is None:
            dtype = _default_dtype
        if enabled and (dtype, cache_enabled) not in requested:
            requested.append((dtype, cache_enabled))
        return original(self, "cpu", _supported(torch, dtype, enabled), enabled, cache_enabled)

    return init


def _supported(torch, dtype, enabled=True):
    """The dtype for the CPU's autocast: float16 needs 2.3 and has slow kernels; bfloat16 has the same size."""
    global as_bfloat16
    if dtype is torch.float16 and (_is_before_2_3 or session.settings().get("float16") != "kept"):
        if enabled:
            as_bfloat16 = True
            session.note("autocast to float16: computed in bfloat16, which has the same size and is faster on a CPU")
        return torch.bfloat16
    return dtype


def _numpy(torch, original):
    """Wraps `Tensor.numpy`: NumPy has no bfloat16, and the script expects float16."""

    def numpy(self, **kwargs):
        if as_bfloat16 and self.dtype is torch.bfloat16:
            self = self.to(torch.float16)
        return original(self, **kwargs)

    return numpy


def _install_state(torch):
    """Redirects `is_autocast_enabled()` and the like, which mean CUDA without a device."""

    def current_dtype():
        enabled = torch.is_autocast_cpu_enabled()
        return torch.get_autocast_cpu_dtype() if enabled else _default_dtype

    def chosen(dtype):
        global _default_dtype
        _default_dtype = dtype
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


def _scaler(original):
    def init(self, *args, **kwargs):
        global scalers
        original(self, *args, **kwargs)
        if self.is_enabled():
            scalers += 1

    return init


def _install_scaling(torch):
    """Implements the two operators of the scaler, which have a CPU kernel since 2.3."""

    def unscale(gradients, found_inf, inverse_scale):
        for gradient in gradients:
            if not torch.isfinite(gradient).all():
                found_inf.fill_(1.0)
            gradient.mul_(inverse_scale)

    def update(scale, growth_tracker, found_inf, growth_factor, backoff_factor, growth_interval):
        if found_inf.item():
            scale.mul_(backoff_factor)
            growth_tracker.fill_(0)
        elif growth_tracker.item() + 1 == growth_interval:
            scale.mul_(growth_factor)
            growth_tracker.fill_(0)
        else:
            growth_tracker.add_(1)
        return scale

    torch._amp_foreach_non_finite_check_and_unscale_ = unscale
    torch._amp_update_scale_ = update
