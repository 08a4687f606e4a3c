"""The host's memory of this process: its limit while the script is recorded, and what is resident."""

_before = None


def limit(most):
    """Limits the process to `most` bytes of resident memory, so that an allocation beyond it fails with its size; None
    for no limit."""
    global _before
    if most is None:
        return
    try:
        import resource

        data, now = _data_and_resident()
        before = resource.getrlimit(resource.RLIMIT_DATA)
        soft = data + max(most - now, 0)
        if before[1] != resource.RLIM_INFINITY:
            soft = min(soft, before[1])
        resource.setrlimit(resource.RLIMIT_DATA, (soft, before[1]))
        _before = before
    except (ImportError, OSError, ValueError):
        pass


def restore():
    """Restores the limit that was there before, as the export needs memory, too."""
    if _before is None:
        return
    import resource

    try:
        resource.setrlimit(resource.RLIMIT_DATA, _before)
    except (OSError, ValueError):
        pass


def resident():
    """Resident bytes of this process; None where the system does not say."""
    try:
        return _data_and_resident()[1]
    except (OSError, KeyError, ValueError):
        return None


def _data_and_resident():
    """Bytes of data, which the limit counts, and resident bytes (proc(5), `status`)."""
    sizes = {}
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        for line in file:
            key, _, value = line.partition(":")
            if key in ("VmData", "VmRSS"):
                sizes[key] = int(value.split()[0]) * 1024
    return sizes["VmData"], sizes["VmRSS"]
