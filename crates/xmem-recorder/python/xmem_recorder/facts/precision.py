"""Mixed precision as the script asks for it: the settings of `autocast("cuda")`, and gradient scalers."""

from ..patching import replace


class _Requests:
    """What was asked for since the start."""

    def __init__(self):
        # Settings of autocast: (dtype, cache_enabled), each once.
        self.autocast = []
        self.has_scaler = False


_requests = _Requests()


def requested(dtype, cache_enabled):
    """Notes a setting of autocast."""
    if (dtype, cache_enabled) not in _requests.autocast:
        _requests.autocast.append((dtype, cache_enabled))


def autocast():
    """The settings of autocast, in the order of their first use."""
    return list(_requests.autocast)


def has_scaler():
    """Returns whether the script has made a gradient scaler that is enabled."""
    return _requests.has_scaler


def watch_autocast(torch):
    """Wraps `autocast`, without redirecting it."""

    def noting(original):
        def init(self, device_type, dtype=None, enabled=True, cache_enabled=None):
            original(self, device_type, dtype, enabled, cache_enabled)
            if device_type == "cuda" and enabled:
                requested(getattr(self, "fast_dtype", dtype), cache_enabled)

        return init

    replace(torch.amp.autocast_mode.autocast, "__init__", noting)


def watch_scalers(torch):
    """Wraps the classes of gradient scalers."""
    for owner in (torch.cuda.amp, torch.amp):
        kind = getattr(owner, "GradScaler", None)
        if kind is not None and "__init__" in vars(kind):
            replace(kind, "__init__", _scaler)


def _scaler(original):
    def init(self, *args, **kwargs):
        original(self, *args, **kwargs)
        if self.is_enabled():
            _requests.has_scaler = True

    return init
