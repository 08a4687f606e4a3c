"""Peaks of memory in the allocator of PyTorch, also those that the script resets."""

from ..patching import replace

# Peaks of `torch.cuda.memory_stats()`, by their names in the metadata.
PEAKS = {
    "allocated": "allocated_bytes.all.peak",
    "reserved": "reserved_bytes.all.peak",
    "active": "active_bytes.all.peak",
    "requested": "requested_bytes.all.peak",
}

# By device.
_peaks = {}


def install(torch):
    """Wraps the functions that reset peaks."""

    def reset(original):
        def reset_peaks(*args, **kwargs):
            read(torch)
            return original(*args, **kwargs)

        return reset_peaks

    for name in ("reset_peak_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached"):
        replace(torch.cuda.memory, name, reset)
        if hasattr(torch.cuda, name):
            setattr(torch.cuda, name, getattr(torch.cuda.memory, name))


def read(torch):
    """Keeps the peaks up to now."""
    if not torch.cuda.is_initialized():
        return
    for device in range(torch.cuda.device_count()):
        stats = torch.cuda.memory_stats(device)
        peaks = _peaks.setdefault(device, {})
        for name, key in PEAKS.items():
            peaks[name] = max(peaks.get(name, 0), stats.get(key, 0))


def of_host(torch):
    """The peak of pinned memory of the host, in bytes; None where PyTorch does not count it (before 2.8)."""
    count = getattr(torch.cuda, "host_memory_stats", None)
    try:
        return None if count is None else count().get("allocated_bytes.peak")
    except Exception:
        return None


def of_fullest():
    """The peaks of the device with most memory, in bytes."""
    return dict(max(_peaks.values(), key=lambda peaks: peaks.get("reserved", 0), default={}))
