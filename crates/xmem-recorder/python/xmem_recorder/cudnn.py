"""`torch.backends.cudnn` as the iterations of the script saw it."""

# Whether `benchmark` was on when a model was called; None before the first call.
_benchmarks = None


def sample(torch):
    """Notes the switches at the call of a model: scripts set them before and after their imports, and
    some around a part of their loop."""
    global _benchmarks
    _benchmarks = bool(_benchmarks) or bool(torch.backends.cudnn.benchmark)


def benchmarks(torch):
    """Whether convolutions were benchmarked at any call of a model, or are now if none was called."""
    return bool(torch.backends.cudnn.benchmark) if _benchmarks is None else _benchmarks


def benchmark_limit(torch):
    """The number of plans that are timed; None where the script leaves PyTorch's default.

    PyTorch's CPU build keeps what the script assigns and has no default
    (torch/backends/cudnn/__init__.py)."""
    limit = getattr(torch.backends.cudnn, "benchmark_limit", None)
    return limit if isinstance(limit, int) and not isinstance(limit, bool) else None
